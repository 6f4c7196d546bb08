# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs in which processes are killed and stopped at any moment: each ends well.

Rounds with an even number train digits in PyTorch, the others a few numbers without any
framework, whose processes start sooner. One process of each job is spared, for the state of
the training lives in processes. A round does the same in every run, as far as time allows. A
few are part of `make test`; `tools/chaos` runs as many as it is told to. After each round

- the job has ended well, with parameters that are equal bit by bit on all ranks;
- no rank that went on was behind a commit that any rank had seen;
- each sample of each epoch was counted once, by the ledger;
- no process of the job is left, and no socket, memfd or name of its shared memory;
- each pause from a kill to the next step was shorter than ten times its goal.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from ranks import program
from test_elastic import LIMIT_S, Job, kills, start  # noqa: F401 -- start is a fixture
from test_ruedarun import children_of, is_alive, wait_until

ROUNDS = int(os.environ.get("RUEDA_TEST_CHAOS_ROUNDS", "4"))
FIRST = int(os.environ.get("RUEDA_TEST_CHAOS_FIRST", "0"))


class Training(NamedTuple):
    """A program of programs/, and how long it takes."""

    name: str
    steps: int
    samples: int
    ranks: int


DIGITS = Training("elastic_digits.py", 70, 900, 3)
NUMBERS = Training("elastic_steps.py", 80, 97, 4)
#: From a kill to the next step that any rank completes: ten times the goal.
WORST_S = 20.0
STOP_S = 0.5 if ROUNDS < 20 else 5.0

KINDS = ["kill", "kill", "two", "stop", "agent", "reset", "init", "rank 0", "term"]


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def workers_of(job: Job) -> list[int]:
    """The processes of the ranks, newcomers that have no rank yet too."""
    found = []
    for guardian in children_of(job.process.pid):
        for agent in children_of(guardian):
            found += children_of(agent)
    return found


def family_of(process: int) -> list[int]:
    found = children_of(process)
    return found + [one for child in found for one in family_of(child)]


def rank_0_of(job: Job) -> int:
    last = {line.process: line.rank for line in job.lines()}
    living = workers_of(job)
    return next((one for one, rank in last.items() if rank == 0 and one in living), 0)


def choose(job: Job, spared: int, kind: str, chance: random.Random) -> list[int]:
    mortal = [process for process in workers_of(job) if process != spared]
    if kind == "rank 0" and rank_0_of(job) in mortal:
        return [rank_0_of(job)]
    if kind == "init":
        known = {line.process for line in job.lines()}
        new = [process for process in mortal if process not in known]
        mortal = new or mortal
    return chance.sample(mortal, min(len(mortal), 2 if kind == "two" else 1))


def strike(job: Job, spared: int, kind: str, chance: random.Random) -> list[int]:
    """Do some harm; returns the processes that are stopped now."""
    how = {"stop": signal.SIGSTOP, "term": signal.SIGTERM}.get(kind, signal.SIGKILL)
    victims: list[int] = []
    try:
        victims = choose(job, spared, kind, chance)
        if victims and kind == "agent" and parent_of(victims[0]) != parent_of(spared):
            victims = [parent_of(victims[0])]
        for victim in victims:
            os.kill(victim, how)
        if kind == "reset":  # the survivors are on their way into the next term
            time.sleep(chance.choice([0.002, 0.01, 0.03, 0.06]))
            for victim in choose(job, spared, "kill", chance):
                os.kill(victim, how)
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has just ended
    return victims if kind == "stop" else []


def go_on(stopped: list[int]) -> None:
    for process in stopped:
        try:
            os.kill(process, signal.SIGCONT)
        except ProcessLookupError:
            pass


Held = set[tuple[str, int]]


def held_by(processes: Iterable[str | int]) -> Held:
    """The sockets and memfds that these processes hold, by kind and inode."""
    held: Held = set()
    for process in processes:
        for path in Path(f"/proc/{process}/fd").glob("*"):
            try:
                link = os.readlink(path)
                if link.startswith(("socket:", "/memfd:")):
                    held.add((link[:7], path.stat().st_ino))
            except OSError:
                continue  # it has just been closed, or it is not ours
    return held


def held_anywhere() -> Held:
    return held_by(name for name in os.listdir("/proc") if name.isdecimal())


def shared_names() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if "rueda" in name}


def check_pauses(job: Job, strikes: list[float]) -> list[float]:
    """From each strike to the next step that is done."""
    done = sorted(line.when for line in job.lines("did", "ends"))
    pauses = [next((then for then in done if then > when), when) - when for when in strikes]
    assert all(pause < WORST_S for pause in pauses), pauses
    return pauses


def check_samples(job: Job, samples: int) -> None:
    """The last line of each rank holds how often each sample of each epoch was seen."""
    counted = json.loads(job.log.with_suffix(".counts").read_text())
    whole = {str(sample): 1 for sample in range(samples)}
    *ended, last = counted
    for counts in ended:
        assert counts == whole
    assert set(last.values()) <= {1}


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures and labels, for ranks that would take long to import scikit-learn."""
    torch = pytest.importorskip("torch", reason="missing tool: torch")
    datasets = pytest.importorskip("sklearn.datasets", reason="missing tool: scikit-learn")
    found = datasets.load_digits()
    path = tmp_path_factory.mktemp("digits") / "digits.pt"
    pictures = torch.tensor(found.images, dtype=torch.float32).flatten(1) / 16
    torch.save((pictures, torch.tensor(found.target)), path)
    return path


@pytest.mark.parametrize("number", range(FIRST, FIRST + ROUNDS))
def test_whoever_is_killed_the_job_ends_well(
    start,  # noqa: F811
    number: int,
    record_property,
    request: pytest.FixtureRequest,
) -> None:
    chance = random.Random(number)
    before = shared_names()
    training = NUMBERS if number % 2 else DIGITS
    data = str(request.getfixturevalue("digits")) if training is DIGITS else ""
    size, slots = str(training.ranks), (training.ranks + 1) // 2
    job = start(
        "-np", size, "--min-np", "1", "--max-np", size, "-H",
        f"localhost:{slots},127.0.0.1:{slots}", "--blacklist-cooldown-range", "1", "2",
        steps=training.steps, pause=0.03, training=program(training.name), KILL=kills(),
        SAMPLES=str(training.samples), DIGITS=data,
    )  # fmt: skip
    job.wait_for_step(2)
    spared = chance.choice(job.lines("begins")).process
    strikes = []
    for turn in range(chance.randint(1, 4)):
        time.sleep(chance.choice([0, 0.01, 0.03, 0.1, 0.3, 1.0]))
        kind = KINDS[(number + turn) % len(KINDS)]
        strikes.append(time.time())
        stopped = strike(job, spared, kind, chance)
        if stopped:
            time.sleep(STOP_S)
            go_on(stopped)
            strikes[-1] = time.time()
    family = family_of(job.process.pid)
    held = held_by(family) - held_by([os.getpid()])
    job.end_well(training.steps)
    check_samples(job, training.samples)
    record_property("pauses", check_pauses(job, strikes))
    assert wait_until(lambda: not any(is_alive(process) for process in family), LIMIT_S)
    assert wait_until(lambda: not held & held_anywhere(), LIMIT_S)
    assert shared_names() <= before
