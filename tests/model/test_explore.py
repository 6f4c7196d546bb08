# SPDX-License-Identifier: Apache-2.0
"""The search itself: it visits everything, and tells how it got there."""

from __future__ import annotations

import pytest
from explore import Broken, explore


class Counters:
    """Two counters that go up one at a time; a state is the pair."""

    def __init__(self, top: int, rounds: bool = False, bad: tuple = (), good_end: bool = True):
        self.top, self.rounds, self.bad, self.good_end = top, rounds, bad, good_end

    def start(self) -> tuple:
        return (0, 0)

    def steps(self, state: tuple):
        if state == self.bad:
            raise Broken("a bad state")
        for which in range(2):
            after = list(state)
            after[which] += 1
            if after[which] <= self.top:
                yield f"{which} goes up", tuple(after)
            elif self.rounds:
                yield f"{which} begins again", (0, 0)

    def complaint(self, state: tuple):
        return None if self.good_end else "this is no end"


def test_every_state_is_visited_once() -> None:
    found = explore(Counters(top=3))
    assert (found.states, found.ends) == (16, [(3, 3)])


def test_a_bad_state_is_shown_with_the_shortest_way_to_it() -> None:
    with pytest.raises(Broken) as caught:
        explore(Counters(top=3, bad=(0, 2)))
    assert str(caught.value).split("\n  ") == [
        "broken after these events:", "1 goes up", "1 goes up", "=> a bad state"
    ]


def test_an_end_that_is_none_is_found() -> None:
    with pytest.raises(Broken, match="nothing more happens, but this is no end"):
        explore(Counters(top=1, good_end=False))


def test_going_round_in_a_circle_is_found() -> None:
    with pytest.raises(Broken, match="round in a circle"):
        explore(Counters(top=1, rounds=True))
