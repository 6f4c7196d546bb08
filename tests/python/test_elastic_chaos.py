# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs in which processes are killed and stopped at any moment: each ends well.

One process of each job is spared, for the state of the training lives in processes. A
round does the same in every run, as far as time allows. A few are part of `make test`;
`tools/chaos` runs 100.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from test_elastic import LIMIT_S, Job, kills, start  # noqa: F401 -- start is a fixture
from test_ruedarun import children_of, is_alive, wait_until

ROUNDS = int(os.environ.get("RUEDA_TEST_CHAOS_ROUNDS", "4"))
STEPS = 80


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])


def workers_of(job: Job) -> list[int]:
    """The processes of the ranks, newcomers that have no rank yet too."""
    found = []
    for guardian in children_of(job.process.pid):
        for agent in children_of(guardian):
            found += children_of(agent)
    return found


def strike(job: Job, spared: int, chance: random.Random) -> list[int]:
    """Do some harm; returns the processes that are stopped now."""
    mortal = [process for process in workers_of(job) if process != spared]
    if not mortal:
        return []
    kind = chance.choice(["kill", "kill", "kill", "two", "stop", "agent"])
    victims = chance.sample(mortal, min(len(mortal), 2 if kind == "two" else 1))
    try:
        if kind == "agent" and parent_of(victims[0]) != parent_of(spared):
            victims = [parent_of(victims[0])]
        for victim in victims:
            os.kill(victim, signal.SIGSTOP if kind == "stop" else signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        return []  # it has just ended
    return victims if kind == "stop" else []


@pytest.mark.parametrize("number", range(ROUNDS))
def test_whoever_is_killed_the_job_ends_well(start, number: int) -> None:  # noqa: F811
    chance = random.Random(number)
    job = start(
        "-np", "4", "--min-np", "1", "--max-np", "4", "-H", "localhost:2,127.0.0.1:2",
        "--blacklist-cooldown-range", "1", "2", steps=STEPS, pause=0.03, KILL=kills(),
    )  # fmt: skip
    job.wait_for_step(2)
    spared = chance.choice(job.lines("begins")).process
    for _ in range(chance.randint(1, 4)):
        time.sleep(chance.choice([0, 0.01, 0.03, 0.1, 0.3]))
        stopped = strike(job, spared, chance)
        if stopped:
            time.sleep(0.5)
            for process in stopped:
                if is_alive(process):
                    os.kill(process, signal.SIGCONT)
    workers = workers_of(job)
    job.end_well(STEPS)
    assert wait_until(lambda: not any(is_alive(process) for process in workers), LIMIT_S)
