# SPDX-License-Identifier: Apache-2.0
"""Sets come and go in every order of events, and breaking their rules shows."""

from __future__ import annotations

import pytest
from explore import Broken, explore
from process_sets import ADD, DROP, WAIT, ProcessSets

NO_MEMBER = (ADD, DROP)

# Rank 0 is no member; what ranks 1 and 2 do.
SCRIPTS = {
    "nothing": (NO_MEMBER, NO_MEMBER, NO_MEMBER),
    "one that is waited for": (NO_MEMBER, (ADD, "a", WAIT, DROP), (ADD, "a", WAIT, DROP)),
    "one in flight": (NO_MEMBER, (ADD, "a", DROP), (ADD, "a", DROP)),
    "two in different orders": (NO_MEMBER, (ADD, "a", "b", DROP), (ADD, "b", "a", DROP)),
    "one that only one has": (NO_MEMBER, (ADD, "a", DROP), (ADD, DROP)),
    "one that only the other has": (NO_MEMBER, (ADD, DROP), (ADD, "a", DROP)),
    "again with the same name": (
        NO_MEMBER * 2, (ADD, "a", DROP, ADD, "a", DROP), (ADD, "a", DROP, ADD, "a", DROP)),
    "again, with what was left over": (
        NO_MEMBER * 2, (ADD, "a", DROP, ADD, "b", WAIT, DROP), (ADD, DROP, ADD, "b", WAIT, DROP)),
    "one that stays": (
        (ADD, DROP, ADD), (ADD, "a", DROP, ADD, "a", WAIT), (ADD, "a", DROP, ADD, "a", WAIT)),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_everything_ends_in_every_order_of_events(name: str) -> None:
    assert explore(ProcessSets(SCRIPTS[name])).ends


def results_of(name: str, rank: int) -> set:
    """All that can come out for a rank."""
    return {end.ranks[rank].results for end in explore(ProcessSets(SCRIPTS[name])).ends}


def test_what_is_waited_for_is_complete_on_both() -> None:
    for rank in (1, 2):
        assert results_of("one that is waited for", rank) == {((0, "a", True),)}


def test_what_is_under_way_may_be_complete_or_cancelled() -> None:
    for rank in (1, 2):
        assert results_of("one in flight", rank) == {((0, "a", True),), ((0, "a", False),)}


def test_what_only_one_has_is_cancelled() -> None:
    assert results_of("one that only one has", 1) == {((0, "a", False),)}
    assert results_of("one that only the other has", 2) == {((0, "a", False),)}


def test_the_next_set_works_whatever_became_of_the_one_before() -> None:
    for rank in (1, 2):
        for results in results_of("one that stays", rank):
            assert (1, "a", True) in results


# What goes wrong without a rule, and a script that shows it.
FAULTS = {
    "one_number": "again with the same name",
    "early_is_lost": "one that is waited for",
    "runs_on": "one in flight",
    "says_nothing": "one that only the other has",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_missing_rule_is_found(fault: str) -> None:
    with pytest.raises(Broken, match="broken after these events"):
        explore(ProcessSets(SCRIPTS[FAULTS[fault]], faults=[fault]))
