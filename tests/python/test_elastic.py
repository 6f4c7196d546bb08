# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs with real processes on this host: ranks are killed, hosts come and go."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Callable, NamedTuple

import pytest
from ranks import environment

LIMIT_S = 180
#: From the death of a rank to the next step; the goal is a tenth of it.
PAUSE_S = 10.0

PROGRAM = Path(__file__).parent / "programs" / "elastic_steps.py"


class Line(NamedTuple):
    """What a rank wrote into its log (programs/elastic_steps.py)."""

    what: str
    process: int
    rank: int
    size: int
    step: int
    when: float
    weights: list[float]


class Job:
    """One job of ruedarun that runs, and what its ranks have written."""

    def __init__(self, words: list[str], log: Path, **more: str) -> None:
        self.log = log
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env=environment(**more),
        )  # fmt: skip

    def lines(self, *kinds: str) -> list[Line]:
        text = self.log.read_text() if self.log.exists() else ""
        whole = text[: text.rfind("\n") + 1].splitlines()
        lines = [Line(*json.loads(line)) for line in whole]
        return [line for line in lines if not kinds or line.what in kinds]

    def wait_for(self, is_there: Callable[[list[Line]], bool], what: str) -> None:
        """Wait until the log says so."""
        until = time.monotonic() + LIMIT_S
        while not is_there(self.lines()):
            if self.process.poll() is not None or time.monotonic() > until:
                pytest.fail(f"no {what}; the job says:\n{self.end()[1]}")
            time.sleep(0.01)

    def wait_for_step(self, step: int) -> None:
        self.wait_for(lambda lines: any(line.step >= step for line in lines), f"step {step}")

    def end(self) -> tuple[int, str]:
        """Wait for the exit code, and return it with all that was printed."""
        output, _ = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, output

    def end_well(self, steps: int, ranks: int | None = None) -> str:
        """It has to end with equal ranks, and no committed step was lost."""
        code, output = self.end()
        assert code == 0, output
        ends = self.lines("ends")
        assert {line.size for line in ends} == {ranks if ranks is not None else len(ends)}
        assert sorted(line.rank for line in ends) == list(range(len(ends))), output
        assert {line.step for line in ends} == {steps}
        assert len({tuple(line.weights) for line in ends}) == 1
        committed = 0
        for line in self.lines("begins", "committed"):
            if line.what == "committed":
                committed = max(committed, line.step)
            else:
                assert line.step >= committed, f"rank {line.rank} went back to {line.step}"
        return output


@pytest.fixture
def start(need_tool: Callable[[str], str], tmp_path: Path) -> Iterator[Callable[..., Job]]:
    """A function that starts a job, which is ended with the test."""
    started: list[Job] = []

    def call(
        *words: str, steps: int, pause: float = 0.0, tool: str = "ruedarun",
        training: str | None = None, **more: str,
    ) -> Job:  # fmt: skip
        log = tmp_path / f"log{len(started)}"
        command = [sys.executable, training or str(PROGRAM), str(log), str(steps), str(pause)]
        started.append(Job([need_tool(tool), *words, *command], log, **more))
        return started[-1]

    try:
        yield call
    finally:
        for job in started:
            job.process.kill()
            job.process.communicate()


class Script:
    """A discovery script that prints what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "discover"
        self.body = folder / "body"
        self.run("echo")
        self.path.write_text(f"#!/bin/sh\n. {self.body}\n")
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    def run(self, body: str) -> None:
        """Run these lines of shell from now on."""
        new = self.body.with_suffix(".new")
        new.write_text(body + "\n")
        new.rename(self.body)

    def hosts(self, *hosts: str) -> None:
        self.run("\n".join(f"echo {host}" for host in hosts))


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def kills(*orders: tuple[int, int]) -> str:
    return json.dumps(orders)


def pause_after_death(job: Job) -> float:
    """From the last death to the first step that is done after it, in seconds."""
    died = max(line.when for line in job.lines("dies"))
    return min(line.when for line in job.lines("did") if line.when > died) - died


# ---- Ranks that die ---------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_the_others_go_on_when_a_rank_is_killed(start, rank: int) -> None:
    job = start(
        "-np", "3", "--min-np", "2", "-H", "localhost:3",
        steps=20, KILL=kills((rank, 7 + 3 * rank)),
    )  # fmt: skip
    output = job.end_well(steps=20, ranks=2)
    assert "was killed by signal 9 (SIGKILL)" in output
    assert "2 ranks are left" in output
    assert "the job goes on with 2 ranks (term 2)" in output
    assert pause_after_death(job) < PAUSE_S


def test_two_ranks_that_die_at_once_are_one_change_or_two(start) -> None:
    job = start(
        "-np", "4", "--min-np", "2", "-H", "localhost:4", steps=15, KILL=kills((0, 5), (3, 5))
    )  # fmt: skip
    job.end_well(steps=15, ranks=2)


def test_a_rank_that_dies_while_a_term_begins_is_left_out(start) -> None:
    # Rank 1 is killed in the second term, whose first step it does not reach.
    job = start(
        "-np", "4", "--min-np", "2", "-H", "localhost:4", steps=15, pause=0.05,
        KILL=kills((3, 5)),
    )  # fmt: skip
    job.wait_for(lambda lines: any(line.what == "dies" for line in lines), "death")
    victim = next(line.process for line in job.lines("begins") if line.rank == 1)
    os.kill(victim, signal.SIGKILL)
    job.end_well(steps=15, ranks=2)


def test_a_stopped_rank_is_slow_and_not_dead(start) -> None:
    job = start("-np", "2", "--min-np", "1", "-H", "localhost:2", steps=30, pause=0.02)
    job.wait_for_step(5)
    victim = job.lines("begins")[0].process
    os.kill(victim, signal.SIGSTOP)
    time.sleep(1)
    os.kill(victim, signal.SIGCONT)
    job.end_well(steps=30, ranks=2)
    assert {line.size for line in job.lines()} == {2}


def test_a_process_takes_the_place_of_a_dead_one(start) -> None:
    job = start(
        "-np", "2", "--min-np", "1", "--max-np", "2", "-H", "localhost:3",
        steps=60, pause=0.05, KILL=kills((0, 3)),
    )  # fmt: skip
    job.end_well(steps=60, ranks=2)
    assert len({line.process for line in job.lines("begins")}) == 3


def test_a_barred_slot_is_used_again_after_the_cooldown(start) -> None:
    job = start(
        "-np", "2", "--min-np", "1", "--blacklist-cooldown-range", "1", "1", "-H", "localhost:2",
        steps=60, pause=0.05, KILL=kills((1, 3)),
    )  # fmt: skip
    job.end_well(steps=60, ranks=2)
    assert len({line.process for line in job.lines("begins")}) == 3


def test_horovodrun_bars_the_whole_host(start) -> None:
    job = start(
        "-np", "4", "--min-np", "2", "-H", "localhost:2,127.0.0.1:2",
        steps=15, tool="horovodrun", KILL=kills((0, 5)),
    )  # fmt: skip
    job.end_well(steps=15, ranks=2)


def test_the_ranks_of_a_lost_agent_are_left_out(start) -> None:
    job = start("-np", "3", "--min-np", "1", "-H", "localhost:1,127.0.0.1:2", steps=60, pause=0.05)
    job.wait_for_step(5)
    victim = next(line.process for line in job.lines("begins") if line.rank == 2)
    agent = int(Path(f"/proc/{victim}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(agent, signal.SIGKILL)
    output = job.end_well(steps=60, ranks=1)
    assert "127.0.0.1 is lost" in output


# ---- Leaving with notice ---------------------------------------------------


def goes_on_without(job: Job, victims: list[int], output: str) -> None:
    """These left at a commit, and no rank repeated a step."""
    assert not {line.process for line in job.lines("ends")} & set(victims)
    steps = [(line.process, line.step) for line in job.lines("did")]
    assert len(steps) == len(set(steps))
    assert "killed" not in output
    assert "exit code" not in output


def test_a_rank_that_is_told_to_end_leaves_at_a_commit(start) -> None:
    job = start("-np", "3", "--min-np", "1", "-H", "localhost:3", steps=60, pause=0.05)
    job.wait_for_step(5)
    victim = next(line.process for line in job.lines("begins") if line.rank == 0)
    os.kill(victim, signal.SIGTERM)
    output = job.end_well(steps=60, ranks=2)
    assert "rank 0 on localhost was told to end (SIGTERM); it leaves at the next commit" in output
    goes_on_without(job, [victim], output)


def test_the_ranks_of_an_agent_that_is_told_to_end_leave(start) -> None:
    job = start("-np", "3", "--min-np", "1", "-H", "localhost:1,127.0.0.1:2", steps=60, pause=0.05)
    job.wait_for_step(5)
    victims = [line.process for line in job.lines("begins") if line.rank > 0]
    agent = int(Path(f"/proc/{victims[0]}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(agent, signal.SIGTERM)
    output = job.end_well(steps=60, ranks=1)
    assert "the agent of 127.0.0.1 was told to end (SIGTERM)" in output
    goes_on_without(job, victims, output)


def test_the_end_of_a_job_is_no_notice(start) -> None:
    job = start("-np", "2", "--min-np", "1", "-H", "localhost:2", steps=10000, pause=0.05)
    job.wait_for_step(3)
    began = time.monotonic()
    job.process.send_signal(signal.SIGTERM)
    code, output = job.end()
    assert code == 128 + signal.SIGTERM
    assert "leaves at the next commit" not in output
    assert time.monotonic() - began < PAUSE_S


def test_the_ranks_say_that_the_store_of_the_launcher_is_lost(start) -> None:
    job = start("-np", "2", "--min-np", "1", "-H", "localhost:2", steps=10000, pause=0.05)
    job.wait_for_step(3)
    workers = [line.process for line in job.lines("begins")]
    job.process.kill()
    # The agents, which end them, have its standard error.
    output, _ = job.process.communicate(timeout=LIMIT_S)
    assert "the launcher is gone" in output
    assert "and the store of the job with it" in output
    assert "ends 2 ranks on this host" in output
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


# ---- Agents that come by themselves -----------------------------------------


def test_agents_of_unlisted_hosts_join_and_leave(start, need_tool, tmp_path: Path) -> None:
    key, port = tmp_path / "key", free_port()
    job = start(
        "-np", "1", "--min-np", "1", "--listen", f"127.0.0.1:{port}", "--key-file", str(key),
        steps=150, pause=0.05,
    )  # fmt: skip
    agents = []

    def join(name: str, slots: int) -> subprocess.Popen[str]:
        agents.append(subprocess.Popen(
            [need_tool("ruedarun"), "agent", "--join", f"127.0.0.1:{port}", "--key-file",
             str(key), "--host", name, "--slots", str(slots)],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(),
        ))  # fmt: skip
        return agents[-1]

    try:
        wait_for(key.exists)
        time.sleep(0.2)  # an agent may come before its launcher listens, or after
        first = join("spot1", 1)
        job.wait_for_step(3)
        join("spot2", 2)
        job.wait_for(lambda lines: any(line.size == 3 for line in lines), "term of 3 ranks")
        # The name is taken.
        again = join("spot2", 1)
        assert again.wait(LIMIT_S) != 0
        assert "host 'spot2' has an agent already" in again.stderr.read()
        first.send_signal(signal.SIGTERM)
        assert first.wait(LIMIT_S) == 0
        output = job.end_well(steps=150, ranks=2)
    finally:
        for agent in agents:
            agent.kill()
            agent.communicate()
    assert "waiting at 127.0.0.1" in output
    assert "spot2 has joined with 2 slots" in output
    assert "the agent of spot1 was told to end (SIGTERM)" in output


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


# ---- Ends -------------------------------------------------------------------


def test_too_few_ranks_end_the_job_with_words(start) -> None:
    job = start(
        "-np", "2", "--min-np", "2", "--max-np", "3", "--elastic-timeout", "1",
        "-H", "localhost:2", steps=15, KILL=kills((1, 5)),
    )  # fmt: skip
    code, output = job.end()
    assert code == 128 + signal.SIGKILL
    assert "there is room for 1 rank, and 2 are needed (--min-np); waiting up to 1 s" in output
    assert "after 1 s 1 rank is there, and 2 are needed; rank 1 on localhost was killed" in output


def test_the_reset_limit_ends_the_job(start) -> None:
    job = start(
        "-np", "3", "--min-np", "1", "--reset-limit", "1", "-H", "localhost:3", steps=30,
        pause=0.02, KILL=kills((0, 5)),
    )  # fmt: skip
    job.wait_for(lambda lines: any(line.size == 2 and line.step > 6 for line in lines), "term 2")
    os.kill(next(line.process for line in job.lines() if line.size == 2), signal.SIGKILL)
    code, output = job.end()
    assert code != 0
    assert "exceeds the limit: 1 (--reset-limit)" in output


def test_a_job_that_is_not_elastic_is_started_again(need_tool, tmp_path: Path) -> None:
    # A rank that fails once, for it finds what it has left.
    body = f"echo life $RUEDA_RESTART; test -e {tmp_path}/x || {{ touch {tmp_path}/x; exit 5; }}"
    words = [need_tool("ruedarun"), "-np", "1", "--restarts", "2", "sh", "-c", body]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
        env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [line[-6:] for line in done.stdout.splitlines()] == ["life 0", "life 1"]
    assert "ended with exit code 5" in done.stderr
    assert "restart 1 of 2" in done.stderr


def test_restarts_have_an_end(need_tool) -> None:
    words = [need_tool("ruedarun"), "-np", "1", "--restarts", "1", "sh", "-c", "exit 4"]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
        env=environment(),
    )  # fmt: skip
    assert done.returncode == 4
    assert "the job has failed 2 times, and --restarts is 1" in done.stderr


def test_a_program_that_fails_everywhere_ends_the_job_at_once(need_tool) -> None:
    words = [need_tool("ruedarun"), "-np", "2", "--min-np", "1", "-H", "localhost:2"]
    done = subprocess.run(
        [*words, sys.executable, "-c", "raise SystemExit(7)"], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    assert done.returncode == 7
    assert "no host is left that could be used" in done.stderr


# ---- Hosts that come and go ---------------------------------------------------


def test_ranks_come_when_the_script_names_more_hosts(start, script: Script) -> None:
    script.hosts("localhost:1")
    job = start(
        "-np", "1", "--min-np", "1", "--host-discovery-script", str(script.path),
        steps=100, pause=0.05,
    )  # fmt: skip
    job.wait_for_step(3)
    script.hosts("localhost:1", "127.0.0.1:2")
    job.end_well(steps=100, ranks=3)
    first = job.lines("begins")[0].process
    # The one that was there first has the state, and keeps its rank.
    assert {line.rank for line in job.lines() if line.process == first} == {0}


def test_ranks_go_when_the_script_names_fewer_hosts(start, script: Script) -> None:
    script.hosts("localhost:2", "127.0.0.1:1")
    job = start(
        "-np", "3", "--min-np", "1", "--host-discovery-script", str(script.path),
        steps=80, pause=0.05,
    )  # fmt: skip
    job.wait_for_step(3)
    script.hosts("127.0.0.1:1")
    output = job.end_well(steps=80, ranks=1)
    assert "not used any more; this process ends" in output
    assert "killed" not in output


def test_ranks_come_and_go_when_the_hostfile_is_written_again(start, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"

    def write(*lines: str) -> None:
        new = hosts.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in lines))
        new.rename(hosts)

    write("localhost slots=1")
    job = start(
        "-np", "1", "--min-np", "1", "--hostfile", str(hosts), steps=200, pause=0.05
    )  # fmt: skip
    job.wait_for_step(3)
    write("localhost slots=1", "127.0.0.1 slots=2")
    job.wait_for(lambda lines: any(line.size == 3 for line in lines), "term of 3 ranks")
    write("localhost slots=1", "127.0.0.1 slots=1")
    output = job.end_well(steps=200, ranks=2)
    assert "not used any more; this process ends" in output
    assert "killed" not in output


def test_bad_answers_of_the_script_are_named_and_the_job_goes_on(start, script: Script) -> None:
    script.hosts("localhost:2")
    job = start(
        "-np", "2", "--min-np", "1", "--host-discovery-script", str(script.path),
        steps=110, pause=0.05,
    )  # fmt: skip
    for step, body in [(3, "exit 3"), (35, "echo '<html> it is down'"), (70, "true")]:
        job.wait_for_step(step)
        script.run(body)
    output = job.end_well(steps=110, ranks=2)
    for words in [
        "failed with exit code 3; its last good answer still counts",
        "is not of the form HOST or HOST:SLOTS; its last good answer",
        "there is no host in what it printed; its last good answer",
    ]:
        assert output.count(words) == 1


def test_a_script_that_hangs_is_ended_and_named(start, script: Script) -> None:
    script.hosts("localhost:1")
    job = start(
        "-np", "1", "--min-np", "1", "--host-discovery-script", str(script.path),
        steps=130, pause=0.1,
    )  # fmt: skip
    job.wait_for_step(3)
    script.run("sleep 100")
    output = job.end_well(steps=130, ranks=1)
    assert "has not ended within 10 s, so it was ended" in output


def test_a_script_that_fails_at_first_ends_the_job(start, script: Script) -> None:
    script.run("exit 3")
    job = start(
        "-np", "1", "--min-np", "1", "--host-discovery-script", str(script.path), steps=5
    )  # fmt: skip
    code, output = job.end()
    assert code == 1
    assert "failed with exit code 3; the job is ended" in output
