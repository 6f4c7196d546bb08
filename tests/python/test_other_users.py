# SPDX-License-Identifier: Apache-2.0
"""Processes of other users and of other user namespaces stay outside, unless they have the key."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from ranks import Done, environment, run_all

LIMIT_S = 60.0
START = "4s"  # for ranks that do not find each other

# It uses only what other users may read: Python and the library.
PROGRAM = """
import ctypes, os, sys
library, ctx, x = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p(), ctypes.c_float(1)
if library.rueda_init(None, ctypes.byref(ctx)) != 0:
    sys.exit(3)
at, one, status = ctypes.byref(x), ctypes.c_size_t(1), 0
for _ in range(int(os.environ.get("COUNT", "1"))):
    status = status or library.rueda_allreduce(ctx, at, at, one, 7, 0)
print(x.value, flush=True)
library.rueda_shutdown(ctx)
sys.exit(status)
"""


def user(number: int) -> list[str]:
    return ["setpriv", "--reuid", str(number), "--regid", str(number), "--clear-groups"]


NAMESPACE = ["unshare", "--user"]
OVERFLOW = ["unshare", "--user", "--map-user=65534"]

# How rank 0 and rank 1 run, and why they are two users.
STRANGERS = {
    "two users": (user(1001), user(1002)),
    "root and a user": ([], user(1001)),
    "a user and root": (user(1001), []),
    "two users, both shown as 65534 in namespaces":
        ([*user(1001), *OVERFLOW], [*user(1002), *NAMESPACE]),
    "65534 in a namespace, and a user": ([*user(1001), *OVERFLOW], user(1002)),
    "a user and 65534 in a namespace": (user(1002), [*user(1001), *NAMESPACE]),
    "one user in two namespaces": ([*user(1001), *OVERFLOW], [*user(1001), *OVERFLOW]),
    "user 65534 itself, twice": (user(65534), user(65534)),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """What all users can read: the library and the program; and a key for each user.

    Not in a folder of pytest's: those are for their owner only.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for tool in ("setpriv", "unshare"):
        if shutil.which(tool) is None:
            pytest.skip(f"missing tool: {tool}")
    probe = [*user(1001), *OVERFLOW, "true"]
    if subprocess.run(probe, capture_output=True, timeout=30).returncode != 0:
        pytest.skip("missing tool: user namespaces are turned off")
    import rueda

    with tempfile.TemporaryDirectory(prefix="rueda-users-") as name:
        folder = Path(name)
        # The wheel's library finds libsodium two folders above itself.
        library = Path(rueda.get_library())
        (folder / "rueda" / "lib").mkdir(parents=True)
        shutil.copy(library, folder / "rueda" / "lib" / "librueda.so")
        if (library.parents[2] / "rueda.libs").exists():
            shutil.copytree(library.parents[2] / "rueda.libs", folder / "rueda.libs")
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)
        (folder / "program.py").write_text(PROGRAM)
        (folder / "program.py").chmod(0o644)
        yield folder


def key_of(folder: Path, number: int) -> str:
    """The job's key, in a file that is that user's own."""
    path = folder / f"key{number}"
    if not path.exists():
        path.touch(0o600)
        path.write_text("5a" * 32 + "\n")
        os.chown(path, number, number)
    return str(path)


def start(folder: Path, ways: tuple[list[str], list[str]], **more: list[str]) -> list[Done]:
    """Two ranks that run these ways; `more` has a variable's value for each rank."""
    library = folder / "rueda" / "lib" / "librueda.so"
    job = f"users-{uuid.uuid4().hex}"
    return run_all(
        [[*way, "/usr/bin/python3", str(folder / "program.py"), str(library)] for way in ways],
        [
            environment(
                RUEDA_RANK=str(rank), RUEDA_SIZE="2", RUEDA_JOB=job, RUEDA_START_TIMEOUT=START,
                **{name: values[rank] for name, values in more.items()},
            )
            for rank in range(2)
        ],
        LIMIT_S,
    )  # fmt: skip


@pytest.mark.parametrize("who", STRANGERS)
def test_users_without_a_key_do_not_meet(folder: Path, who: str) -> None:
    done = start(folder, STRANGERS[who])
    assert [(one.returncode, one.stdout) for one in done] == [(3, "")] * 2, done


def test_processes_of_one_user_meet_without_a_key(folder: Path) -> None:
    done = start(folder, (user(1001), user(1001)))
    assert [(one.returncode, one.stdout) for one in done] == [(0, "2.0\n")] * 2, done


@pytest.mark.parametrize(
    "who", ["user 65534 itself, twice", "one user in two namespaces"]
)
def test_the_key_lets_in_what_users_cannot_prove(folder: Path, who: str) -> None:
    """Both ranks are of one user, to whom the key file belongs."""
    number = 65534 if "itself" in who else 1001
    key = key_of(folder, number)
    done = start(folder, STRANGERS[who], RUEDA_KEY_FILE=[key, key])
    assert [(one.returncode, one.stdout) for one in done] == [(0, "2.0\n")] * 2, done


def test_another_key_is_refused(folder: Path) -> None:
    """Not even a process of the same user."""
    other = folder / "other"
    other.touch(0o600)
    other.write_text("a5" * 32 + "\n")
    os.chown(other, 1001, 1001)
    done = start(folder, (user(1001), user(1001)),
                 RUEDA_KEY_FILE=[key_of(folder, 1001), str(other)])  # fmt: skip
    assert [(one.returncode, one.stdout) for one in done] == [(3, "")] * 2, done
    assert "do not agree" in done[1].stderr


# ---- Limits of a user ----------------------------------------------------------


def test_ranks_without_threads_say_so_once_and_go_on(folder: Path) -> None:
    """The user may have as many threads as there are ranks, so none for the library."""
    way = [*user(1003), "bash", "-c", 'ulimit -u 2 && exec "$@"', "bash"]
    done = start(folder, (way, way), COUNT=["100", "100"])
    assert [(one.returncode, one.stdout) for one in done] == [(0, f"{2.0**100}\n")] * 2, done
    for one in done:
        said = [line for line in one.stderr.splitlines() if "no background thread" in line]
        assert len(said) == 1, one.stderr
        assert "ulimit -u" in said[0]


# ---- The list of sockets -------------------------------------------------------


def test_names_of_jobs_are_not_in_the_list_of_sockets(folder: Path) -> None:
    """Every user can read that list while a job starts."""
    name = f"unguessable-{uuid.uuid4().hex}"
    library = folder / "rueda" / "lib" / "librueda.so"
    process = subprocess.Popen(
        [sys.executable, str(folder / "program.py"), str(library)],
        env=environment(RUEDA_RANK="0", RUEDA_SIZE="2", RUEDA_JOB=name, RUEDA_START_TIMEOUT="30s"),
        stderr=subprocess.DEVNULL,
    )
    try:
        ended = threading.Event()
        while not ended.wait(0.05):
            sockets = Path("/proc/net/unix").read_text()
            if f"rueda-{os.geteuid()}-" in sockets:
                break
            assert process.poll() is None
        assert name not in sockets
    finally:
        process.kill()
        process.wait()
