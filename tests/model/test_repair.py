# SPDX-License-Identifier: Apache-2.0
"""The change of terms: survivors deliver the same, and nothing hangs."""

from __future__ import annotations

import pytest
from explore import Broken, explore
from repair import GONE, Repair


def test_without_a_death_all_members_are_in_every_result():
    found = explore(Repair(operations=3, kills=0))
    assert {rank.results for end in found.ends for rank in end.ranks} == {((0, 1, 2),) * 3}


def test_survivors_of_a_death_deliver_the_same():
    found = explore(Repair(ranks=3, operations=2, kills=1))
    seen = {rank.results for end in found.ends for rank in end.ranks if rank.stage != GONE}
    # The death may come before each operation, or after the last.
    assert ((0, 1, 2), (0, 1, 2)) in seen
    assert ((0, 1, 2), (0, 1)) in seen
    assert ((1, 2), (1, 2)) in seen


def test_a_death_in_the_change_is_survived():
    found = explore(Repair(ranks=3, operations=1, kills=2))
    alone = {rank.results for end in found.ends for rank in end.ranks if rank.term == 3}
    assert ((2,),) in alone


def test_a_member_that_has_ended_may_leave():
    explore(Repair(ranks=3, operations=1, kills=1, leaves=True))


@pytest.mark.parametrize(
    ("fault", "model"),
    [
        ("deliver_at_once", {"operations": 1, "kills": 1}),
        ("most", {"operations": 1, "kills": 1}),
        ("each_decides", {"ranks": 4, "operations": 1, "kills": 2}),
        ("settle_at_once", {"operations": 1, "kills": 2}),
        ("clears_early", {"ranks": 4, "operations": 1, "kills": 2}),
        ("looks_late", {"operations": 1, "kills": 2}),
    ],
)
def test_a_rule_that_is_left_out_is_missed(fault, model):
    with pytest.raises(Broken):
        explore(Repair(faults=(fault,), **model))
