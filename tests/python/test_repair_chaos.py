# SPDX-License-Identifier: Apache-2.0
"""RUEDA_REPAIR=1 among several hosts, with ranks that are killed and stopped, and links that
are taken down and up, at any moment.

A round does the same in every run, as far as time allows. A few are part of `make test`;
`tools/chaos` runs as many as it is told to. After each round

- the job has ended well;
- all ranks that were left have the same parameters, bit by bit, and these are what a
  training alone has that is told which ranks are in which sum;
- no process of the job is left, and no name of its shared memory;
- each pause from a blow to the next step was shorter than ten times its goal.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ranks import program
from test_elastic_chaos import FIRST, ROUNDS, STOP_S, WORST_S, family_of, shared_names
from test_ruedarun import is_alive, wait_until
from test_ruedarun_hosts import Cluster, make_cluster  # noqa: F401 -- a fixture

pytest.importorskip("torch", reason="missing tool: torch")

LIMIT_S = 300
STEPS = 60
KINDS = ["kill", "two", "kill", "stop", "change", "rank 0", "link"]


class Ranks:
    """What the ranks of a job have written."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.left = folder, set(range(size))

    def lines(self, seat: int) -> list[dict[str, Any]]:
        path = self.folder / str(seat)
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
        return [json.loads(line) for line in whole.splitlines()]

    def have_done(self, step: int) -> bool:
        return all(any(line.get("did", -1) >= step for line in self.lines(seat))
                   for seat in self.left)  # fmt: skip

    def signal(self, seat: int, how: signal.Signals) -> None:
        try:
            os.kill(self.lines(seat)[0]["pid"], how)
        except ProcessLookupError:
            pass  # it has just ended

    def kill(self, count: int, chance: random.Random, first: bool = False) -> None:
        """So many at once, but for one that stays."""
        mortal = sorted(self.left)
        chance.shuffle(mortal)
        if first:
            mortal.sort()
        for seat in mortal[: min(count, len(mortal) - 1)]:
            self.signal(seat, signal.SIGKILL)
            self.left.discard(seat)


def strike(cluster: Cluster, ranks: Ranks, kind: str, chance: random.Random) -> None:
    if kind == "stop":
        seat = chance.choice(sorted(ranks.left))
        ranks.signal(seat, signal.SIGSTOP)
        time.sleep(STOP_S)
        ranks.signal(seat, signal.SIGCONT)
    elif kind == "link":
        host = chance.randrange(1, cluster.hosts.count)
        cluster.hosts.unplug(host)
        time.sleep(0.5)
        cluster.hosts.plug(host)
    else:
        ranks.kill(2 if kind == "two" else 1, chance, first=kind == "rank 0")
        if kind == "change":
            time.sleep(chance.choice([0.002, 0.01, 0.03, 0.06]))
            ranks.kill(1, chance)


@pytest.mark.parametrize("number", range(FIRST, FIRST + (ROUNDS + 1) // 2))
def test_whoever_is_lost_the_others_have_equal_parameters(
    make_cluster,  # noqa: F811
    tmp_path: Path,
    number: int,
    record_property,
) -> None:
    chance = random.Random(number)
    slots = chance.choice([(2, 2), (1, 2, 1), (3, 1), (1, 1)])
    names = shared_names()
    cluster = make_cluster(len(slots))
    ranks = Ranks(tmp_path, sum(slots))
    process = cluster.start(
        "-np", str(sum(slots)), "-H", cluster.slots(*slots), sys.executable,
        program("repair_exact.py"), str(STEPS), "0.03",
        RUEDA_REPAIR="1", RUEDA_HOST_TIMEOUT="20s", OUT=str(tmp_path),
    )  # fmt: skip
    assert wait_until(lambda: process.poll() is not None or ranks.have_done(2), LIMIT_S)
    assert process.poll() is None, process.communicate()
    blows = []
    for turn in range(chance.randint(1, 3)):
        time.sleep(chance.choice([0, 0.01, 0.03, 0.1, 0.3]))
        strike(cluster, ranks, KINDS[(number + turn) % len(KINDS)], chance)
        blows.append(time.time())
    family = family_of(process.pid)
    out, error = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, error
    ends = [ranks.lines(seat)[-1] for seat in ranks.left]
    assert {(str(end["got"]), end["size"], end["is_equal"]) for end in ends} == {
        (str(ends[0]["got"]), len(ends), True)
    }
    assert sorted(end["rank"] for end in ends) == list(range(len(ends)))
    done = sorted(line["when"] for seat in ranks.left for line in ranks.lines(seat)
                  if "when" in line)  # fmt: skip
    pauses = [next((then for then in done if then > blow), blow) - blow for blow in blows]
    record_property("pauses", pauses)
    assert all(pause < WORST_S for pause in pauses), pauses
    assert wait_until(lambda: not any(is_alive(one) for one in family), LIMIT_S)
    assert shared_names() <= names
