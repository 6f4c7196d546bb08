# SPDX-License-Identifier: Apache-2.0
"""RUEDA_REPAIR=1 among several hosts: ranks and hosts are lost, and the others go on."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from cluster import ip
from ranks import program
from test_repair import STEPS as TRAINING_STEPS
from test_repair import said
from test_ruedarun import wait_until
from test_ruedarun_hosts import Cluster, make_cluster  # noqa: F401 -- a fixture

pytest.importorskip("torch", reason="missing tool: torch")

LIMIT_S = 300
STEPS = 60
# From a death to the next step that is done: ten times the goal for the worst.
WORST_S = 20.0


class Sums:
    """A job of ruedarun that adds bits."""

    def __init__(self, cluster: Cluster, folder: Path, slots: list[int], **more: str) -> None:
        self.out = folder / "out"
        self.out.mkdir()
        self.size = sum(slots)
        settings = {"RUEDA_REPAIR": "1", "RUEDA_HOST_TIMEOUT": "2.5s", "OUT": str(self.out), **more}
        self.process = cluster.start(
            "-np", str(self.size), "-H", cluster.slots(*slots),
            sys.executable, program("repair_bits.py"), str(STEPS), "0.05", "300000", **settings,
        )  # fmt: skip

    def lines(self, seat: int) -> list[dict[str, Any]]:
        path = self.out / str(seat)
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
        return [json.loads(line) for line in whole.splitlines()]

    def wait_for(self, step: int) -> None:
        """All ranks have done it."""

        def have_all() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            return all(any(line.get("did", -1) >= step for line in self.lines(seat))
                       for seat in range(self.size))  # fmt: skip

        assert wait_until(have_all, LIMIT_S)

    def strike(self, seat: int, how: signal.Signals = signal.SIGKILL) -> float:
        os.kill(self.lines(seat)[0]["pid"], how)
        return time.time()

    def end(self) -> str:
        out, error = self.process.communicate(timeout=LIMIT_S)
        assert self.process.returncode == 0, error
        return error

    def check(self, lost: set[int]) -> list[dict[str, Any]]:
        """Survivors have the same results, in which there are more and more of them alone."""
        ends = [self.lines(seat)[-1] for seat in range(self.size) if seat not in lost]
        survivors = sum(1 << seat for seat in range(self.size) if seat not in lost)
        assert all(end["got"] == ends[0]["got"] for end in ends)
        before = (1 << self.size) - 1
        for result in (one for step in ends[0]["got"] for one in step):
            assert result & survivors == survivors, ends[0]["got"]
            # Of two lanes one may be ahead of the other by what is in flight.
            before &= result
        assert ends[0]["got"][0] == [(1 << self.size) - 1] * 4
        assert ends[0]["got"][-1] == [survivors] * 4
        assert sorted(end["rank"] for end in ends) == list(range(len(ends)))
        assert {end["size"] for end in ends} == {len(ends)}
        return ends

    def pause(self, seat: int, since: float) -> float:
        return min(line["when"] for line in self.lines(seat) if line.get("when", 0) > since) - since


@pytest.fixture
def add(make_cluster, tmp_path: Path) -> Callable[..., tuple[Cluster, Sums]]:  # noqa: F811
    def start(*slots: int, **more: str) -> tuple[Cluster, Sums]:
        cluster = make_cluster(len(slots))
        return cluster, Sums(cluster, tmp_path, list(slots), **more)

    return start


@pytest.mark.parametrize(
    ("slots", "victims"), [((2, 2), [3]), ((2, 2), [0]), ((1, 1, 1), [0, 1]), ((2, 1), [2])]
)
def test_others_go_on_with_the_same_results(add, slots, victims) -> None:
    _, sums = add(*slots)
    sums.wait_for(5)
    since = [sums.strike(seat) for seat in victims][-1]
    error = sums.end()
    sums.check(set(victims))
    left = next(seat for seat in range(sums.size) if seat not in victims)
    assert sums.pause(left, since) < WORST_S
    assert error.count("without it") >= len(victims)


def test_a_loss_while_the_others_change_is_survived(add) -> None:
    _, sums = add(2, 2)
    sums.wait_for(5)
    sums.strike(1)
    time.sleep(0.02)
    sums.strike(2)
    sums.end()
    sums.check({1, 2})


def test_others_go_on_without_a_host_that_is_cut_off(add) -> None:
    cluster, sums = add(1, 1, 2)
    sums.wait_for(5)
    cluster.hosts.unplug(2)
    error = sums.end()
    ends = sums.check({2, 3})
    assert [end["local"] for end in ends] == [[0, 1], [0, 1]]
    assert error.count("the others have gone on without it") == 2


def test_of_two_hosts_that_do_not_see_each_other_one_goes_on(add) -> None:
    cluster, sums = add(1, 1, 1)
    sums.wait_for(5)
    for one, other in ((1, 2), (2, 1)):
        for way in (cluster.hosts.ipv4(other) + "/32", cluster.hosts.ipv6(other) + "/128"):
            ip("-n", cluster.hosts.name(one), "route", "add", "blackhole", way)
    sums.end()
    lost = {1} if "got" not in sums.lines(1)[-1] else {2}
    sums.check(lost)
    assert "got" not in sums.lines(lost.pop())[-1]


def test_a_link_that_comes_back_and_a_stopped_rank_lose_nobody(add) -> None:
    cluster, sums = add(1, 2, RUEDA_HOST_TIMEOUT="20s")
    sums.wait_for(5)
    cluster.hosts.unplug(1)
    time.sleep(1)
    cluster.hosts.plug(1)
    sums.strike(2, signal.SIGSTOP)
    time.sleep(5)
    sums.strike(2, signal.SIGCONT)
    sums.end()
    sums.check(set())


def test_training_goes_on_as_if_the_step_had_begun_alone(
    make_cluster,  # noqa: F811
) -> None:
    cluster = make_cluster(2)
    deaths = {0: 3, 3: 7}
    process = cluster.start(
        "-np", "4", "-H", cluster.slots(2, 2), sys.executable, program("torch_repair.py"),
        str(TRAINING_STEPS), *(f"{rank}:{step}" for rank, step in deaths.items()),
        RUEDA_REPAIR="1",
    )  # fmt: skip
    out, error = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, error
    lines = said(out)
    assert [line[0] for line in lines] == [1, 2]
    assert sorted(line[1] for line in lines) == [0, 1]
    assert len({line[3] for line in lines}) == 1
    assert {line[4] for line in lines} == {"True"}
