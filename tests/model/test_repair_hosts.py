# SPDX-License-Identifier: Apache-2.0
"""The change of terms between hosts: survivors deliver the same, and nothing hangs."""

from __future__ import annotations

import pytest
from explore import Broken, explore
from repair_hosts import DEAD, OUT, RepairHosts


def results_of(found):
    return {rank.results for end in found.ends for rank in end.ranks
            if rank.stage not in (DEAD, OUT)}  # fmt: skip


def test_survivors_of_a_death_deliver_the_same():
    seen = results_of(explore(RepairHosts(ranks=3, operations=1, kills=1)))
    # The death may come before the operation, or after it.
    assert {((0, 1, 2),), ((1, 2),), ((0, 1),)} <= seen


def test_a_death_between_operations_is_survived():
    seen = results_of(explore(RepairHosts(ranks=2, operations=2, kills=1)))
    assert {((0, 1), (0, 1)), ((0, 1), (0,)), ((1,), (1,))} <= seen


def test_a_second_death_in_the_change_is_survived():
    found = explore(RepairHosts(ranks=2, operations=1, kills=2))
    assert any(rank.term == 2 for end in found.ends for rank in end.ranks)


def test_of_two_sides_one_goes_on_and_the_other_stops():
    found = explore(RepairHosts(ranks=2, operations=1, kills=0, cuts=2))
    ends = {tuple(rank.stage == OUT for rank in end.ranks) for end in found.ends}
    assert (True, False) in ends and (False, True) in ends
    assert (True, True) not in ends


@pytest.mark.parametrize(
    ("fault", "model"),
    [
        ("deliver_at_once", {"ranks": 2, "kills": 1}),
        ("most", {"ranks": 3, "kills": 1}),
        ("settle_at_once", {"ranks": 3, "kills": 2}),
        ("hears_the_dead", {"ranks": 2, "kills": 0, "cuts": 2}),
        ("counts_now", {"ranks": 3, "kills": 2}),
    ],
)
def test_a_rule_that_is_left_out_is_missed(fault, model):
    with pytest.raises(Broken, match="broken after these events"):
        explore(RepairHosts(faults=(fault,), **model))
