# SPDX-License-Identifier: Apache-2.0
"""Ranks of one host, started for real by every launcher that we know.

The ranks are the examples hello_allreduce.c and hello.py, as a user has them.
A rank tells in its log which launcher it found and how it met the others, so
that no row passes by another way than its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rueda
from ranks import Done, environment, free_port, program, run_all
from slurm import Slurm

LIMIT_S = 60
RANKS = 4
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
IS_DONE = [f"rank {rank} of {RANKS}: the sum is 10" for rank in range(RANKS)]

# How ranks say that they met.
AT_SOCKET = "the ranks meet on this host, at socket"
BY_PMIX = "the launcher introduces the ranks by PMIx"
BY_PMI1 = "the launcher introduces the ranks by PMI-1"
BY_PMI2 = "the launcher introduces the ranks by PMI-2"
BY_CALLER = "the caller introduces the ranks"


@pytest.fixture(scope="session")
def hello_c(tmp_path_factory: pytest.TempPathFactory, need_tool) -> list[str]:
    """The example in C, compiled against the installed package."""
    library = Path(rueda.get_library())
    program = tmp_path_factory.mktemp("hello") / "hello_allreduce"
    subprocess.run(
        [need_tool("gcc"), str(EXAMPLES / "c" / "hello_allreduce.c"), "-o", str(program),
         f"-I{rueda.get_include()}", str(library), f"-Wl,-rpath,{library.parent}"],
        check=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    return [str(program)]


@pytest.fixture(scope="session")
def hello_python() -> list[str]:
    return [sys.executable, str(EXAMPLES / "python" / "hello.py")]


@pytest.fixture(params=["c", "python"])
def hello(request: pytest.FixtureRequest) -> list[str]:
    """Both, one after the other."""
    return request.getfixturevalue(f"hello_{request.param}")


def launch(command: list[str], **more: str) -> Done:
    """Run a launcher, whose ranks are to talk."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=environment(RUEDA_LOG_LEVEL="info", **more),
    )


def by_hand(
    command: list[str], numbers: list[int], prefix: str = "RUEDA", **more: str
) -> list[Done]:
    """Ranks of these numbers in plain shells, of a job of their own."""
    more = {"RUEDA_LOG_LEVEL": "info", "RUEDA_JOB": f"test-{os.getpid()}", **more}
    return run_all(
        [command] * len(numbers),
        [
            environment(
                **{f"{prefix}_RANK": str(rank), f"{prefix}_SIZE": str(RANKS)}, **more
            )
            for rank in numbers
        ],
        LIMIT_S,
    )  # fmt: skip


def check(done: list[Done], *words: str) -> None:
    """All ranks have the sum, and each of them says these words in one line."""
    out = "".join(one.stdout for one in done)
    err = "".join(one.stderr for one in done)
    assert [one.returncode for one in done] == [0] * len(done), err
    assert sorted(out.splitlines()) == IS_DONE, err
    for rank in range(RANKS):
        lines = [line for line in err.splitlines() if line.startswith(f"rueda[rank {rank}]")]
        assert any(all(word in line for word in words) for line in lines), err


# ---- Launchers --------------------------------------------------------------


@pytest.fixture
def openmpi(need_tool) -> list[str]:
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [need_tool("mpirun.openmpi"), "--oversubscribe", *root, "-n", str(RANKS)]


@pytest.fixture
def hydra(need_tool) -> list[str]:
    return [need_tool("mpiexec.hydra"), "-n", str(RANKS)]


@pytest.fixture
def torchrun(need_tool) -> list[str]:
    return [need_tool("torchrun"), "--nproc-per-node", str(RANKS)]


def test_open_mpi(openmpi: list[str], hello: list[str]) -> None:
    done = launch([*openmpi, *hello])
    check([done], "Open MPI's OMPI_COMM_WORLD_RANK", BY_PMIX)


def test_mpich(hydra: list[str], hello: list[str]) -> None:
    done = launch([*hydra, *hello])
    check([done], "Hydra's PMI_RANK", BY_PMI1)


@pytest.mark.parametrize(
    ("options", "words"),
    [([], AT_SOCKET), (["--mpi=pmix"], BY_PMIX), (["--mpi=pmi2"], BY_PMI2)],
    ids=["plain", "pmix", "pmi2"],
)
def test_slurm(slurm: Slurm, hello: list[str], options: list[str], words: str) -> None:
    done = slurm.run([*options, "-n", str(RANKS), *hello], LIMIT_S, RUEDA_LOG_LEVEL="info")
    check([done], "Slurm's SLURM_PROCID", words)


def test_torchrun_hands_over_its_store(torchrun: list[str], hello_python: list[str]) -> None:
    done = launch([*torchrun, hello_python[-1]])
    check([done], "torchrun's RANK", BY_CALLER)


def test_torchrun_starts_the_ranks_again(torchrun: list[str]) -> None:
    """Its store is the same as before, and must not give the words of the dead."""
    done = launch(
        [torchrun[0], "--nproc-per-node", "2", "--max-restarts", "1",
         program("hello_in_second_life.py"), str(EXAMPLES / "python")]
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = [f"rank {rank} of 2: the sum is 3" for rank in (0, 0, 1, 1)]
    assert sorted(done.stdout.splitlines()) == answers
    assert done.stderr.count(BY_CALLER) == 4


def test_torchrun_of_one_host_needs_no_store(torchrun: list[str], hello_c: list[str]) -> None:
    done = launch([*torchrun, "--no-python", *hello_c])
    check([done], "torchrun's RANK", AT_SOCKET)


def test_plain_shells(hello: list[str]) -> None:
    done = by_hand(hello, [3, 1, 0, 2])
    check(done, "RUEDA_RANK and RUEDA_SIZE say", AT_SOCKET)


def test_variables_of_horovod(hello: list[str]) -> None:
    done = by_hand(hello, [0, 1, 2, 3], "HOROVOD", HOROVOD_LOCAL_SIZE=str(RANKS))
    check(done, "Horovod's HOROVOD_RANK", AT_SOCKET)


def test_tf_config(hello_python: list[str], key_file: str) -> None:
    first = free_port() - 1000
    tasks = [("chief", 0), ("worker", 0), ("worker", 1), ("worker", 2)]
    cluster = {
        "chief": [f"127.0.0.1:{first}"],
        "worker": [f"127.0.0.1:{first + 1 + i}" for i in range(3)],
        "ps": [f"127.0.0.1:{first + 4}"],
    }
    done = run_all(
        [hello_python] * RANKS,
        [
            environment(
                TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}}),
                RUEDA_KEY_FILE=key_file,
                RUEDA_LOG_LEVEL="info",
            )
            for kind, index in tasks
        ],
        LIMIT_S,
    )
    check(done, "the caller's rank", f"the ranks meet at the store 127.0.0.1:{first + 1000}")


def test_a_store(hello: list[str], key_file: str) -> None:
    store = f"127.0.0.1:{free_port()}"
    done = by_hand(hello, [2, 3, 1, 0], RUEDA_STORE=store, RUEDA_KEY_FILE=key_file)
    check(done, "RUEDA_RANK", f"the ranks meet at the store {store}")


def test_a_store_goes_before_the_launchers_own_way(
    openmpi: list[str], hello_c: list[str], key_file: str
) -> None:
    store = f"localhost:{free_port()}"
    done = launch([*openmpi, *hello_c], RUEDA_STORE=store, RUEDA_KEY_FILE=key_file)
    check([done], "Open MPI's", f"the ranks meet at the store {store}")


def test_a_key_file_joins_the_launchers_own_way(
    openmpi: list[str], hello_c: list[str], key_file: str
) -> None:
    done = launch([*openmpi, *hello_c], RUEDA_KEY_FILE=key_file)
    check([done], "Open MPI's", BY_PMIX)


# ---- A launcher in a launcher -----------------------------------------------


def test_mpirun_in_a_step_of_slurm(slurm: Slurm, openmpi: list[str], hello_c: list[str]) -> None:
    done = slurm.run(["-n", "1", *openmpi, *hello_c], LIMIT_S, RUEDA_LOG_LEVEL="info")
    check([done], "Open MPI's", "SLURM_PROCID is there too, but mpirun is nearer", BY_PMIX)


def test_mpiexec_in_a_step_of_slurm(slurm: Slurm, hydra: list[str], hello_c: list[str]) -> None:
    command = [hydra[0], "-launcher", "fork", "-hosts", "localhost", *hydra[1:], *hello_c]
    done = slurm.run(["-n", "1", *command], LIMIT_S, RUEDA_LOG_LEVEL="info")
    check([done], "Hydra's", "SLURM_PROCID is there too, but mpiexec is nearer", BY_PMI1)


def test_variables_of_horovod_in_open_mpi(openmpi: list[str], hello: list[str]) -> None:
    """As horovodrun does it; here in the opposite order, to tell them apart."""
    shell = (
        "export HOROVOD_RANK=$((3 - OMPI_COMM_WORLD_RANK)) HOROVOD_SIZE=4 "
        'HOROVOD_LOCAL_SIZE=4; exec "$@"'
    )
    done = launch([*openmpi, "sh", "-c", shell, "sh", *hello])
    check([done], "Horovod's", "OMPI_COMM_WORLD_RANK is there too", AT_SOCKET)


# ---- Bad ends ---------------------------------------------------------------


def errors(done: list[Done]) -> list[str]:
    """What the ranks say of their end, which is to be a bad one."""
    assert [one.returncode for one in done] == [1] * len(done)
    assert [one.stdout for one in done] == [""] * len(done)
    return [one.stderr.strip().splitlines()[-1] for one in done]


def test_a_store_without_a_key_is_refused(hello: list[str]) -> None:
    done = by_hand(hello, [0, 1, 2, 3], RUEDA_STORE=f"127.0.0.1:{free_port()}")
    for words in errors(done):
        assert "there is no key" in words
        assert 'Make one with "rueda key FILE"' in words
        assert "set RUEDA_KEY_FILE" in words


def test_a_rank_with_another_key_is_refused(
    hello_c: list[str], key_file: str, need_tool, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    subprocess.run([need_tool("rueda"), "key", str(other)], check=True, timeout=LIMIT_S)
    common = environment(
        RUEDA_SIZE="2", RUEDA_STORE=f"127.0.0.1:{free_port()}", RUEDA_START_TIMEOUT="2s"
    )
    started = time.monotonic()
    done = run_all(
        [hello_c] * 2,
        [
            {**common, "RUEDA_RANK": "0", "RUEDA_KEY_FILE": key_file},
            {**common, "RUEDA_RANK": "1", "RUEDA_KEY_FILE": str(other)},
        ],
        LIMIT_S,
    )
    first, second = errors(done)
    assert time.monotonic() - started < 20
    assert "rank 1 and the store do not agree" in second
    assert "key" in second
    assert "of 2 ranks these did not come in time: 1" in first


def test_a_key_file_that_others_can_read_is_refused(hello: list[str], key_file: str) -> None:
    os.chmod(key_file, 0o640)
    done = by_hand(hello, [0, 1], RUEDA_STORE=f"127.0.0.1:{free_port()}", RUEDA_KEY_FILE=key_file)
    for words in errors(done):
        assert "mode 0640" in words
        assert f"chmod 600 {key_file}" in words


def test_a_rank_that_does_not_come_to_the_store_is_named_by_all(
    hello: list[str], key_file: str
) -> None:
    started = time.monotonic()
    done = by_hand(
        hello,
        [0, 1, 3],
        RUEDA_STORE=f"127.0.0.1:{free_port()}",
        RUEDA_KEY_FILE=key_file,
        RUEDA_START_TIMEOUT="6s",
    )
    assert time.monotonic() - started < 60
    for words in errors(done):
        assert "of 4 ranks these did not come in time: 2;" in words


def test_a_rank_that_does_not_come_to_the_socket_is_named_by_rank_0(hello: list[str]) -> None:
    started = time.monotonic()
    done = by_hand(hello, [0, 1, 3], RUEDA_START_TIMEOUT="6s")
    assert time.monotonic() - started < 60
    first, *others = errors(done)
    assert "2" in first
    for words in others:
        assert "in time" in words


@pytest.mark.parametrize(
    ("launcher", "variable"),
    [
        ("openmpi", "OMPI_COMM_WORLD_RANK"),
        ("hydra", "PMI_RANK"),
    ],
)
def test_a_launcher_one_of_whose_ranks_is_not_ours_ends_in_time(
    request: pytest.FixtureRequest, hello_c: list[str], launcher: str, variable: str
) -> None:
    """Its exchange cannot tell who is missing, and the first to give up ends all."""
    command = request.getfixturevalue(launcher)
    shell = f'test "${variable}" = 2 && exec sleep 5; exec "$@"'
    started = time.monotonic()
    done = launch([*command, "sh", "-c", shell, "sh", *hello_c], RUEDA_START_TIMEOUT="2s")
    assert time.monotonic() - started < 20
    assert done.returncode != 0
    assert done.stdout == ""
    assert "not all ranks came to meet in time" in done.stderr


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"RUEDA_RANK": "1"}, "RUEDA_RANK is set (1) and RUEDA_SIZE is not"),
        ({"RUEDA_SIZE": "2"}, "RUEDA_SIZE is set (2) and RUEDA_RANK is not"),
        ({"HOROVOD_RANK": "0"}, "HOROVOD_RANK is set (0) and HOROVOD_SIZE is not"),
        ({"TORCHELASTIC_RUN_ID": "x", "RANK": "0"}, "WORLD_SIZE is not"),
        ({"OMPI_COMM_WORLD_RANK": "0"}, "OMPI_COMM_WORLD_SIZE is not"),
        ({"PMI_RANK": "0"}, "PMI_SIZE is not"),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, "PMI_FD is not"),
        ({"SLURM_STEP_ID": "0", "SLURM_NTASKS": "2"}, "SLURM_PROCID is not"),
        ({"RUEDA_RANK": "2", "RUEDA_SIZE": "2"}, "ranks go from 0 to 1"),
        (
            {"HOROVOD_RANK": "0", "HOROVOD_SIZE": "2", "HOROVOD_LOCAL_SIZE": "1"},
            "set RUEDA_STORE=host:port and RUEDA_KEY_FILE",
        ),
    ],
)  # fmt: skip
def test_half_a_place_is_named(hello_c: list[str], variables: dict[str, str], words: str) -> None:
    (done,) = run_all([hello_c], [environment(**variables)], LIMIT_S)
    assert words in errors([done])[0]


def test_a_wrong_tf_config_is_named(hello_python: list[str]) -> None:
    (done,) = run_all([hello_python], [environment(TF_CONFIG="{}")], LIMIT_S)
    assert 'TF_CONFIG: no "cluster"' in errors([done])[0]
