# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs in which processes are killed and stopped at any moment: each ends well.

One process of each job is spared, for the state of the training lives in processes. A
round does the same in every run, as far as time allows. A few are part of `make test`;
`tools/chaos` runs as many as it is told to. After each round

- the job has ended well, with equal weights on all ranks;
- no rank that went on was behind a commit that any rank had seen;
- each sample of each epoch was counted once, by the ledger;
- no process of the job is left, and no descriptor or name of its shared memory;
- each pause from a kill to the next step was shorter than ten times its goal.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
from test_elastic import LIMIT_S, Job, kills, start  # noqa: F401 -- start is a fixture
from test_ruedarun import children_of, is_alive, wait_until

ROUNDS = int(os.environ.get("RUEDA_TEST_CHAOS_ROUNDS", "4"))
FIRST = int(os.environ.get("RUEDA_TEST_CHAOS_FIRST", "0"))
STEPS = 80
SAMPLES = 97
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


def shared_names() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if "rueda" in name}


def check_pauses(job: Job, strikes: list[float]) -> list[float]:
    """From each strike to the next step that is done."""
    done = sorted(line.when for line in job.lines("did", "ends"))
    pauses = [next((then for then in done if then > when), when) - when for when in strikes]
    assert all(pause < WORST_S for pause in pauses), pauses
    return pauses


def check_samples(job: Job) -> None:
    """The last line of each rank holds how often each sample of each epoch was seen."""
    counted = json.loads(job.log.with_suffix(".counts").read_text())
    whole = {str(sample): 1 for sample in range(SAMPLES)}
    *ended, last = counted
    for counts in ended:
        assert counts == whole
    assert set(last.values()) <= {1}


@pytest.mark.parametrize("number", range(FIRST, FIRST + ROUNDS))
def test_whoever_is_killed_the_job_ends_well(
    start,  # noqa: F811
    number: int,
    record_property,
) -> None:
    chance = random.Random(number)
    before = shared_names()
    job = start(
        "-np", "4", "--min-np", "1", "--max-np", "4", "-H", "localhost:2,127.0.0.1:2",
        "--blacklist-cooldown-range", "1", "2", steps=STEPS, pause=0.03, KILL=kills(),
        SAMPLES=str(SAMPLES),
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
    job.end_well(STEPS)
    check_samples(job)
    record_property("pauses", check_pauses(job, strikes))
    assert wait_until(lambda: not any(is_alive(process) for process in family), LIMIT_S)
    assert shared_names() <= before
