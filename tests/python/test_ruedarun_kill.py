# SPDX-License-Identifier: Apache-2.0
"""Whoever of a job is killed, and whenever: nothing is left, and the exit code is right.

Each round kills one process by chance, the same in every run of this round. A few are part of
`make test`; `tools/kill-rounds` runs 200.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from ranks import environment
from test_ruedarun import HELLO, LIMIT_S, children_of, is_alive, wait_until

ROUNDS = int(os.environ.get("RUEDA_TEST_KILL_ROUNDS", "16"))

# Of a network for documentation, which is not this host.
THERE = "198.51.100.7"

# As ssh has it: a host, and a command for a shell.
SSH = """\
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
shift
eval "$*"
"""

# What a job has that is no process: a rank writes down the port of the store and the key's inode.
NOTE = 'echo "$RUEDA_STORE" "$(stat -Lc %i /dev/fd/$RUEDA_KEY_FD)" >$NOTES/$RUEDA_RANK; '

# Each with the longest time after which a process is killed.
JOBS = {
    # Prints much, and has a child, and one that has run away.
    "busy": (["sh", "-c", NOTE + "seq 100000; sleep 600 & setsid sleep 600 & seq 100000 >&2; wait"],
             0.15),
    # Comes to its end meanwhile.
    "short": (["sh", "-c", NOTE + "seq 1000; setsid sleep 600 & echo end"], 0.08),
    # Uses the library.
    "meeting": (["sh", "-c", NOTE + '"$@"; echo end', "sh", *HELLO], 0.6),
}  # fmt: skip

CODES = {"launcher": -signal.SIGKILL, "agent": 1, "guardian": 1, "rank": 128 + signal.SIGKILL}


def marked(mark: str) -> list[int]:
    """All processes that have this in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and is_alive(int(folder.name)):
                found.append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def command_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def stat_of(process: int) -> list[str]:
    """The fields of its stat after the name: state, parent, group, session, ..."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["X"] + ["0"] * 51


@dataclass
class Job:
    """A job that runs."""

    process: subprocess.Popen[str]

    def guardians(self) -> list[int]:
        """ssh, or what it has become."""
        children = children_of(self.process.pid)
        return [child for child in children if b"--stdio" in command_of(child)]

    def agents(self) -> list[int]:
        there = [agent for guardian in self.guardians() for agent in children_of(guardian)]
        words = command_of(self.process.pid)
        here = [child for child in children_of(self.process.pid) if command_of(child) == words]
        # Alone of those who have forked, it has a session of its own.
        return [child for child in here if stat_of(child)[3] == str(child)] + there

    def find(self, kind: str) -> list[int]:
        if kind == "launcher":
            return [self.process.pid]
        if kind == "rank":
            ranks = [rank for agent in self.agents() for rank in children_of(agent)]
            # Not one that is about to become a rank.
            return [rank for rank in ranks if b"NOTES" in command_of(rank)]
        return self.guardians() if kind == "guardian" else self.agents()


def descriptors() -> Iterator[tuple[int, str, str]]:
    """All that processes hold: who, the name of what it is, and its inode."""
    for process in filter(str.isdigit, os.listdir("/proc")):
        folder = f"/proc/{process}/fd"
        try:
            links = [f"{folder}/{name}" for name in os.listdir(folder)]
        except OSError:  # it has ended
            continue
        for link in links:
            try:
                yield int(process), os.readlink(link), str(os.stat(link).st_ino)
            except OSError:  # closed meanwhile
                continue


def memfds() -> set[str]:
    """The inodes of all files without a name that processes hold."""
    return {inode for _, name, inode in descriptors() if name.startswith("/memfd:rueda")}


def is_listening(store: str, ended: float) -> bool:
    """Does any process that was there when the job ended? Others may be given the port soon."""
    port = f":{int(store.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and row[1].endswith(port)}
    holders = [holder for holder, name, _ in descriptors() if name in sockets]
    return any(int(stat_of(one)[19]) / os.sysconf("SC_CLK_TCK") < ended for one in holders)


def kill_one(job: Job, kind: str, dice: random.Random) -> bool:
    """False: there is none any more."""
    victims: list[int] = []

    def look() -> bool:
        victims[:] = job.find(kind)
        return victims != [] or job.process.poll() is not None

    assert wait_until(look)
    try:
        os.kill(dice.choice(victims), signal.SIGKILL)
    except (IndexError, ProcessLookupError):
        return False
    return True


@pytest.mark.parametrize("number", range(ROUNDS))
def test_whoever_is_killed_nothing_is_left(need_tool, tmp_path: Path, number: int) -> None:
    dice = random.Random(number)
    kind, name = dice.choice([*CODES]), dice.choice([*JOBS])
    hosts = dice.choice(["localhost:3", f"localhost:1,{THERE}:2", f"{THERE}:2,localhost:1"])
    if kind == "guardian":
        hosts = f"localhost:1,{THERE}:2"
    command, longest_s = JOBS[name]
    for folder in ("notes", "tmp", "bin"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bin" / "ssh").write_text(SSH)
    (tmp_path / "bin" / "ssh").chmod(0o755)
    mark = str(uuid.uuid4())
    process = subprocess.Popen(
        [need_tool("ruedarun"), "-np", "3", "-H", hosts, "--grace", "0.3", *command],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(RUEDA_TEST_MARK=mark, NOTES=str(tmp_path / "notes"),
                        TMPDIR=str(tmp_path / "tmp"),
                        PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}"),
        cwd=tmp_path / "tmp",
    )  # fmt: skip
    job = Job(process)
    try:
        try:
            process.wait(dice.uniform(0, longest_s))
        except subprocess.TimeoutExpired:
            pass
        is_hit = kill_one(job, kind, dice)
        out, err = process.communicate(timeout=LIMIT_S)
        ended = time.clock_gettime(time.CLOCK_BOOTTIME)
        # A process that is killed as it ends may have ended well.
        codes = {CODES[kind]} if is_hit else {0}
        if name != "busy":
            codes.add(0)
        assert process.returncode in codes, f"{kind} of {name} on {hosts}: {err}"
        if process.returncode == 0:
            assert out.count(">:end\n") == 3, out
        assert wait_until(lambda: marked(mark) == []), f"{kind} of {name} on {hosts}"
        assert_nothing_is_left(tmp_path, process.pid, ended)
    finally:
        process.kill()
        process.communicate()


def assert_nothing_is_left(folder: Path, launcher: int, ended: float) -> None:
    """No file, no socket, no file without a name."""
    assert list((folder / "tmp").iterdir()) == []
    assert f"ruedarun-{launcher}-" not in Path("/proc/net/unix").read_text()
    notes = [note.read_text().split() for note in (folder / "notes").iterdir()]
    whole = [note for note in notes if len(note) == 2]
    assert not any(is_listening(store, ended) for store, _ in whole)
    assert not memfds() & {key for _, key in whole}
