# SPDX-License-Identifier: Apache-2.0
"""Every state that a small model of a protocol can reach.

A model says where it starts and what may happen next; explore() follows every
order of events, breadth first, so that what it finds wrong is shown by one of
the shortest ways there. States are hashable values. Three things are wrong:

- the model says so: steps() raises Broken;
- an end that should not be one: nothing can happen, and complaint() says why
  that is too early;
- a circle: events that can go on for ever. Without circles each order of
  events comes to an end, and so "every end is a good one" means that nothing
  hangs, however late a message or a thread may be.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Protocol

# More than any of the tests needs; a model that grew by accident stops here.
MAX_STATES = 400_000


class Model(Protocol):
    def start(self) -> Hashable:
        """The first state."""

    def steps(self, state: Any) -> Iterable[tuple[str, Hashable]]:
        """What may happen in a state: words for it, and the state after it."""

    def complaint(self, state: Any) -> str | None:
        """Why nothing more happening here is wrong; None if all is well."""


class Broken(Exception):
    """Something that must hold does not."""


class Found(NamedTuple):
    states: int
    ends: list  # the states in which nothing more can happen


def explore(model: Model) -> Found:
    """Visit every state. Raises Broken, with the events that led there."""
    first = model.start()
    number = {first: 0}  # each state has one, in the order of finding
    states = [first]
    came_from: list[tuple[int, str]] = [(-1, "")]
    follow: list[list[int]] = []
    ends = []

    def way_to(at: int, what: str) -> Broken:
        events = [what]
        while at > 0:
            at, event = came_from[at]
            events.append(event)
        return Broken("\n  ".join(["broken after these events:", *reversed(events)]))

    for at, state in enumerate(states):  # states grows meanwhile
        after = []
        try:
            for event, following in model.steps(state):
                if following not in number:
                    number[following] = len(states)
                    states.append(following)
                    came_from.append((at, event))
                after.append(number[following])
            if not after:
                complaint = model.complaint(state)
                if complaint:
                    raise Broken(f"nothing more happens, but {complaint}")
                ends.append(state)
        except Broken as broken:
            raise way_to(at, f"=> {broken}") from None
        if len(states) > MAX_STATES:
            raise way_to(at, f"=> more than {MAX_STATES} states")
        follow.append(after)

    stuck = _in_a_circle(follow)
    if stuck is not None:
        raise way_to(stuck, "=> from here the events can go round in a circle")
    return Found(len(states), ends)


def _in_a_circle(follow: list[list[int]]) -> int | None:
    """A state that can be reached from itself or from such a state, if any.

    States that nothing leads to any more are taken away until none is left.
    """
    ways_in = [0] * len(follow)
    for after in follow:
        for to in after:
            ways_in[to] += 1
    free = [at for at, ways in enumerate(ways_in) if ways == 0]
    for at in free:  # free grows meanwhile
        for to in follow[at]:
            ways_in[to] -= 1
            if ways_in[to] == 0:
                free.append(to)
    left = set(range(len(follow))).difference(free)
    return min(left) if left else None
