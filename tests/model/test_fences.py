# SPDX-License-Identifier: Apache-2.0
"""What threads and ranks share without a lock is right on a machine that reorders loads
and stores; without any one of its fences and orders it is not."""

from __future__ import annotations

import fences
import pytest
from explore import Broken, explore
from weak_memory import Machine, fence, load, store

PLACES = ["queue", "delivery", "doorbell", "sleeping_holder", "parked", "background"]

FAULTS = [
    ("queue", "push"),
    ("queue", "take"),
    ("delivery", "deliver"),
    ("delivery", "look"),
    ("doorbell", "arm"),
    ("doorbell", "notify"),
    ("sleeping_holder", "arm"),
    ("sleeping_holder", "is_asleep"),
    ("parked", "let_go"),
    ("background", "do_duty"),
    ("background", "let_go"),
]


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_lost_on_a_weak_machine(place: str) -> None:
    assert explore(getattr(fences, place)()).ends


@pytest.mark.parametrize(("place", "without"), FAULTS)
def test_each_fence_is_needed(place: str, without: str) -> None:
    with pytest.raises(Broken):
        explore(getattr(fences, place)(without))


def machine(*between) -> Machine:
    """Store buffering: each thread writes its place, then reads the other's."""
    return Machine(
        {
            "a": [store("x", 1), *between, load("y_seen", "y")],
            "b": [store("y", 1), *between, load("x_seen", "x")],
        },
        lambda r: "both were early" if not r["x_seen"] and not r["y_seen"] else None,
    )


def test_the_machine_reorders_a_store_and_a_later_load() -> None:
    with pytest.raises(Broken, match="both were early"):
        explore(machine())
    explore(machine(fence()))


def test_a_load_behind_a_branch_may_come_early() -> None:
    writer = [store("data", 1), store("flag", 1, "release")]
    reader = [load("flag_seen", "flag"), load("data_seen", "data")]
    early = Machine(
        {"writer": writer, "reader": reader},
        lambda r: "early" if r["flag_seen"] and not r["data_seen"] else None,
    )
    with pytest.raises(Broken, match="early"):
        explore(early)
