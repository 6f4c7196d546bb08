# SPDX-License-Identifier: Apache-2.0
"""Ranks that all wait for each other: the rules by which that is proven, and a model.

1.  Only the coordinator of all ranks, rank 0, begins. It asks in the log when it waits
    itself: a wave.
2.  A rank answers a wave when it waits: all its threads do, all that it has submitted
    is undecided, and nothing of other sets is left for it to send. Until then it keeps
    the question.
3.  An answer says whether anything has changed in the rank since its answer to the wave
    before, and how many messages of other sets it has sent and received so far.
4.  What a rank says travels to the coordinator in order, behind all that it has
    submitted before; and the log comes to each rank in order.
5.  A wave is asked only when all have answered the one before. It proves a deadlock if no
    rank has changed, if the messages sent are as many as those received, and if nothing
    is left that the coordinator could decide.

The model: operations of all ranks are decided by rank 0's log. One other set, of the
last two ranks, has messages of its own, which take any time: the last rank tells the
other one that it is ready, and that one says that both may run. Each rank submits what
its script says and waits for it, one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from explore import Broken

ASK, RUN, READY, ANSWER = "ASK", "RUN", "READY", "ANSWER"
WAVES = 3  # more are not asked, so that the model ends


class Rank(NamedTuple):
    item: int = 0  # of its script
    submitted: bool = False  # that item; then it waits for it
    asked: int = 0
    answered: int = 0
    version: int = 0
    answered_version: int = -1
    sent: int = 0  # messages of the other set
    received: int = 0
    peer_ready: int = 0  # what the other member of the set has submitted


class State(NamedTuple):
    ranks: tuple
    up: tuple  # messages of each rank on their way to rank 0
    down: tuple  # the log on its way to each rank
    aside: tuple  # messages of the other set on their way to its two members
    ready: tuple  # what rank 0 knows: (name, rank)
    answers: tuple  # to the wave that is asked
    waves: int = 0
    verdict: bool = False


def put(values: tuple, index: int, value) -> tuple:
    return (*values[:index], value, *values[index + 1 :])


class Standstill:
    """A script is a tuple of names for each rank; those that begin with "s" are of the
    other set."""

    def __init__(self, scripts, faults=()):
        self.scripts = scripts
        self.size = len(scripts)
        self.faults = frozenset(faults)

    def start(self) -> State:
        none = ((),) * self.size
        return State((Rank(),) * self.size, none, none, ((), ()), (), ())

    # ---- Steps ----------------------------------------------------------------

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.verdict:
            return
        for rank in range(self.size):
            yield from self._submit(state, rank)
            yield from self._answer(state, rank)
            if state.up[rank]:
                yield f"0 hears {state.up[rank][0]} of {rank}", self._hear(state, rank)
            if state.down[rank]:
                yield f"{rank} follows {state.down[rank][0]}", self._follow(state, rank)
        for member in (0, 1):
            if state.aside[member]:
                yield f"{state.aside[member][0]} comes aside", self._hear_aside(state, member)
        first = state.ranks[0]
        may_ask = len(state.answers) == self.size
        if self._waits(state, 0) and state.waves < WAVES and (state.waves == 0 or may_ask):
            if state.waves == first.asked:
                yield "0 asks", self._ask(state)
        if state.waves and len(state.answers) == self.size and self._proves(state):
            yield "0 has proven it", self._judge(state)

    def complaint(self, state: State) -> str | None:
        stuck = [r for r in range(self.size) if state.ranks[r].item < len(self.scripts[r])]
        if stuck and not state.verdict and not stuck == list(range(self.size)):
            return None  # some have ended: not all wait
        if stuck and not state.verdict and state.waves < WAVES:
            return f"{stuck} wait for ever"
        return None  # or another wave would be asked, if the model had no limit

    # ---- Ranks ------------------------------------------------------------------

    def _name(self, state: State, rank: int) -> str | None:
        item = state.ranks[rank].item
        return self.scripts[rank][item] if item < len(self.scripts[rank]) else None

    def _waits(self, state: State, rank: int) -> bool:
        return state.ranks[rank].submitted

    def _submit(self, state: State, rank: int) -> Iterator[tuple[str, State]]:
        me, name = state.ranks[rank], self._name(state, rank)
        if name is None or me.submitted:
            return
        me = me._replace(submitted=True, version=me.version + 1)
        if not name.startswith("s"):
            up = put(state.up, rank, (*state.up[rank], (READY, name)))
            state = state._replace(up=up)
        elif rank == self.size - 1:
            me = me._replace(sent=me.sent + 1)
            state = self._send_aside(state, 0, READY)
        state = state._replace(ranks=put(state.ranks, rank, me))
        yield f"{rank} submits {name}", self._run_aside(state)

    def _end(self, state: State, rank: int) -> State:
        me = state.ranks[rank]
        me = me._replace(item=me.item + 1, submitted=False, version=me.version + 1)
        return state._replace(ranks=put(state.ranks, rank, me))

    def _answer(self, state: State, rank: int) -> Iterator[tuple[str, State]]:
        me = state.ranks[rank]
        if me.answered >= me.asked or not self._waits(state, rank):
            return
        same = me.answered > 0 and me.version == me.answered_version
        said = (ANSWER, me.asked, same, me.sent, me.received)
        me = me._replace(answered=me.asked, answered_version=me.version)
        up = state.up[rank]
        up = (said, *up) if "overtakes" in self.faults else (*up, said)
        state = state._replace(ranks=put(state.ranks, rank, me), up=put(state.up, rank, up))
        yield f"{rank} answers", state

    # ---- The other set, of the last two ranks --------------------------------------

    def _send_aside(self, state: State, member: int, what: str) -> State:
        return state._replace(aside=put(state.aside, member, (*state.aside[member], what)))

    def _run_aside(self, state: State) -> State:
        """Its coordinator has it and knows that the other has: both may run."""
        rank = self.size - 2
        me, name = state.ranks[rank], self._name(state, rank)
        if not (me.submitted and name.startswith("s") and me.peer_ready):
            return state
        me = me._replace(peer_ready=me.peer_ready - 1, sent=me.sent + 1)
        state = self._send_aside(state._replace(ranks=put(state.ranks, rank, me)), 1, RUN)
        return self._end(state, rank)

    def _hear_aside(self, state: State, member: int) -> State:
        what, rest = state.aside[member][0], state.aside[member][1:]
        rank = self.size - 2 + member
        me = state.ranks[rank]
        me = me._replace(received=me.received + 1, version=me.version + 1)
        state = state._replace(aside=put(state.aside, member, rest))
        if what == READY:
            me = me._replace(peer_ready=me.peer_ready + 1)
            return self._run_aside(state._replace(ranks=put(state.ranks, rank, me)))
        return self._end(state._replace(ranks=put(state.ranks, rank, me)), rank)

    # ---- The coordinator --------------------------------------------------------------

    def _log(self, state: State, entry: tuple) -> State:
        return state._replace(down=tuple((*log, entry) for log in state.down))

    def _ask(self, state: State) -> State:
        state = self._log(state, (ASK, state.waves + 1))
        return state._replace(waves=state.waves + 1, answers=())

    def _hear(self, state: State, rank: int) -> State:
        said, rest = state.up[rank][0], state.up[rank][1:]
        state = state._replace(up=put(state.up, rank, rest))
        if said[0] == ANSWER:
            return state._replace(answers=(*state.answers, said[1:]))
        ready = (*state.ready, (said[1], rank))
        if sum(name == said[1] for name, _ in ready) < self.size:
            return state._replace(ready=tuple(sorted(ready)))
        ready = tuple(one for one in ready if one[0] != said[1])
        return self._log(state._replace(ready=ready), (RUN, said[1]))

    def _follow(self, state: State, rank: int) -> State:
        entry, rest = state.down[rank][0], state.down[rank][1:]
        state = state._replace(down=put(state.down, rank, rest))
        if entry[0] == RUN:
            return self._end(state, rank)
        me = state.ranks[rank]._replace(asked=entry[1])
        return state._replace(ranks=put(state.ranks, rank, me))

    def _proves(self, state: State) -> bool:
        same = all(answer[1] for answer in state.answers) or "one_wave" in self.faults
        sent = sum(answer[2] for answer in state.answers)
        received = sum(answer[3] for answer in state.answers)
        return same and (sent == received or "no_counts" in self.faults)

    def _judge(self, state: State) -> State:
        for rank in range(self.size):
            if not self._waits(state, rank):
                raise Broken(f"{rank} does not wait")
        on_the_way = [up for up in state.up if any(said[0] == READY for said in up)]
        runs = [log for log in state.down if any(entry[0] == RUN for entry in log)]
        if on_the_way or runs or any(state.aside):
            raise Broken("what is on its way lets a rank go on")
        return state._replace(verdict=True)
