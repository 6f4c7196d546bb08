# SPDX-License-Identifier: Apache-2.0
"""Ranks that all wait: proven where it is so, in every order of events, and nowhere else."""

from __future__ import annotations

import pytest
from explore import Broken, explore
from standstill import WAVES, Standstill

DEADLOCKS = [
    (("a",), ("b",)),
    (("x", "a"), ("x", "b")),
    (("a",), ("a",), ("b",)),
    (("a",), ("a",), ("s",)),  # the same in another set
]

PROGRAMS = [
    (("a", "b"), ("a", "b")),
    (("a",), ("a",), ("a",)),
    (("a",), ("s", "a"), ("s", "a")),
]


@pytest.mark.parametrize("scripts", DEADLOCKS)
def test_a_deadlock_is_proven_in_every_order(scripts) -> None:
    found = explore(Standstill(scripts))
    assert any(end.verdict for end in found.ends)
    assert all(end.verdict or end.waves == WAVES for end in found.ends)


@pytest.mark.parametrize("scripts", PROGRAMS)
def test_a_program_that_goes_on_is_never_ended(scripts) -> None:
    found = explore(Standstill(scripts))
    assert found.ends
    assert not any(end.verdict for end in found.ends)


@pytest.mark.parametrize(
    ("scripts", "fault"),
    [
        ((("a", "b"), ("a", "b")), "one_wave"),
        ((("a",), ("s", "a"), ("s", "a")), "no_counts"),
        ((("a",), ("a",)), "overtakes"),
    ],
)
def test_without_a_rule_a_program_is_ended_that_could_go_on(scripts, fault) -> None:
    with pytest.raises(Broken):
        explore(Standstill(scripts, faults=[fault]))
