# SPDX-License-Identifier: Apache-2.0
"""Process sets that are made and removed: the rules, and a model of them.

1.  A change, ADD or DROP, is an operation of the set of all ranks, like any other:
    it is in that set's log when every rank has asked for it. Ranks ask in the same
    order, and wait until they have applied the entry themselves.
2.  A member that applies ADD has the set from then on; others may have it before or
    after. What comes for a set that is not there yet waits until it is.
3.  Each set has its own log and its own messages, which carry its number. A number
    is not used again.
4.  A member that applies DROP cancels what it has in flight in the set, also what runs,
    for others may have cancelled it before they started. It says LAST to its
    neighbours in the set's tree, throws away what comes from them, and is done with
    the set when each has said the same: then nothing of the set is on its way.

The negotiation itself is that of log mode, which has its own model; here a set has
two members, of whom the lower one is the coordinator, and announcements of changes
take no time. What is left to arbitrary delay: threads, the application of each
entry, every message inside a set, the start and the end of each collective.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from explore import Broken

ADD, DROP, WAIT = "ADD", "DROP", "WAIT"
READY, RUN, LAST = "READY", "RUN", "LAST"
ABSENT, OPEN, ENDING, OVER = "absent", "open", "ending", "over"


class Lane(NamedTuple):
    """A set, as one of its two members sees it."""

    stage: str = ABSENT
    pending: tuple = ()  # names that were submitted and are not decided
    heard: tuple = ()  # the coordinator's: names that the other has
    running: tuple = ()  # names that were decided, in order
    started: tuple = ()  # the first of them, if it has
    ended: int = 0  # collectives that are complete here
    has_last: bool = False  # the other has said it


class Rank(NamedTuple):
    item: int = 0  # of its script
    asked: int = 0  # changes
    applied: int = 0  # entries of the log
    results: tuple = ()  # (set, name, is complete)


class State(NamedTuple):
    log: tuple
    ranks: tuple
    lanes: tuple  # by set, then by member: 0 is its coordinator
    mail: tuple  # messages on the way to each member, by set or, at fault, by place


def put(values: tuple, index: int, value) -> tuple:
    return (*values[:index], value, *values[index + 1 :])


class ProcessSets:
    """The model. `members` are the two ranks of every set; a script is a tuple of
    items for each rank: ADD, DROP, WAIT or a name to submit to the newest set."""

    def __init__(self, scripts, members=(1, 2), faults=()):
        self.scripts = scripts
        self.members = members
        self.faults = frozenset(faults)
        self.sets = max(script.count(ADD) for script in scripts)

    # ---- The interface of explore() -----------------------------------------

    def start(self) -> State:
        pair = (Lane(), Lane())
        return State(
            (), (Rank(),) * len(self.scripts), (pair,) * self.sets, (((), ()),) * self.sets
        )

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for rank in range(len(self.scripts)):
            yield from self._script(state, rank)
            if state.ranks[rank].applied < len(state.log):
                entry = state.log[state.ranks[rank].applied]
                yield f"{rank} applies {entry}", self._apply(state, rank, *entry)
        for number in range(self.sets):
            for me in (0, 1):
                yield from self._lane_steps(state, number, me)

    def complaint(self, state: State) -> str | None:
        for rank, script in enumerate(self.scripts):
            if state.ranks[rank].item < len(script):
                return f"{rank} waits at {script[state.ranks[rank].item]}"
        for number, pair in enumerate(state.lanes):
            for me, lane in enumerate(pair):
                if lane.stage == ENDING:
                    return f"{self.members[me]} is not done with set {number}"
                if lane.stage == OPEN and (lane.pending or lane.running):
                    return f"{self.members[me]} waits in set {number}"
        if any(letters for pair in state.mail for letters in pair):
            return f"there are messages left: {state.mail}"
        return None

    # ---- What callers do ----------------------------------------------------

    def _script(self, state: State, rank: int) -> Iterator[tuple[str, State]]:
        mine = state.ranks[rank]
        if mine.item == len(self.scripts[rank]) or mine.applied < mine.asked:
            return
        item = self.scripts[rank][mine.item]
        after = mine._replace(item=mine.item + 1)
        if item in (ADD, DROP):
            after = after._replace(asked=mine.asked + 1)
            yield f"{rank} asks for {item}", self._decide(self._with(state, rank, after), item)
            return
        number = sum(kind == ADD for kind, _ in state.log[: mine.applied]) - 1
        me = self.members.index(rank)
        lane = state.lanes[number][me]
        if item == WAIT:
            if not lane.pending and not lane.running:
                yield f"{rank} goes on", self._with(state, rank, after)
            return
        moved = self._set(
            self._with(state, rank, after), number, me,
            lane._replace(pending=(*lane.pending, item)),
        )
        if me == 1:
            moved = self._post(moved, number, 0, (READY, item))
        yield f"{rank} submits {item} to set {number}", self._run_ready(moved, number)

    def _decide(self, state: State, kind: str) -> State:
        """Append the change that all ranks have asked for."""
        if min(rank.asked for rank in state.ranks) == len(state.log):
            return state
        count = sum(known == ADD for known, _ in state.log)
        number = count if kind == ADD else count - 1
        return state._replace(log=(*state.log, (kind, number)))

    # ---- Changes ------------------------------------------------------------

    def _apply(self, state: State, rank: int, kind: str, number: int) -> State:
        mine = state.ranks[rank]
        state = self._with(state, rank, mine._replace(applied=mine.applied + 1))
        if rank not in self.members:
            return state
        me = self.members.index(rank)
        lane = state.lanes[number][me]
        if kind == ADD:
            return self._run_ready(
                self._set(state, number, me, lane._replace(stage=OPEN)), number
            )
        kept = lane.running if "runs_on" in self.faults else ()
        for name in (*lane.pending, *(n for n in lane.running if n not in kept)):
            state = self._result(state, rank, number, name, False)
        ending = lane._replace(
            stage=ENDING, pending=(), heard=(), running=kept,
            started=lane.started if kept else (),
        )
        if "says_nothing" in self.faults:
            return self._set(state, number, me, ending._replace(stage=OVER))
        state = self._post(state, number, 1 - me, (LAST, ""))
        return self._end(self._set(state, number, me, ending), number, me)

    def _end(self, state: State, number: int, me: int) -> State:
        lane = state.lanes[number][me]
        if lane.stage == ENDING and lane.has_last and not lane.running:
            return self._set(state, number, me, lane._replace(stage=OVER))
        return state

    # ---- Inside a set -------------------------------------------------------

    def _lane_steps(self, state: State, number: int, me: int) -> Iterator[tuple[str, State]]:
        lane = state.lanes[number][me]
        letters = state.mail[self._place(number)][me]
        who = self.members[me]
        if letters and lane.stage in (OPEN, ENDING):
            yield f"{who} hears {letters[0]} in set {number}", self._hear(state, number, me)
        if letters and lane.stage == ABSENT and "early_is_lost" in self.faults:
            yield f"{who} drops {letters[0]}", self._take(state, number, me)
        if lane.running and not lane.started:
            started = lane._replace(started=lane.running[:1])
            yield f"{who} starts {lane.running[0]}", self._set(state, number, me, started)
        other = state.lanes[number][1 - me]
        if lane.started and (other.started == lane.started or other.ended > lane.ended):
            done = lane._replace(running=lane.running[1:], started=(), ended=lane.ended + 1)
            after = self._set(state, number, me, done)
            after = self._result(after, who, number, lane.running[0], True)
            yield f"{who} completes {lane.running[0]}", self._end(after, number, me)

    def _hear(self, state: State, number: int, me: int) -> State:
        kind, name = state.mail[self._place(number)][me][0]
        state = self._take(state, number, me)
        lane = state.lanes[number][me]
        if lane.has_last:
            raise Broken(f"{kind} {name} comes to set {number} after its last message")
        if kind == LAST:
            return self._end(
                self._set(state, number, me, lane._replace(has_last=True)), number, me
            )
        if lane.stage == ENDING:
            return state
        if kind == READY:
            heard = self._set(state, number, me, lane._replace(heard=(*lane.heard, name)))
            return self._run_ready(heard, number)
        if name not in lane.pending:
            raise Broken(f"{self.members[me]} hears of {name} in set {number}, and has it not")
        return self._set(state, number, me, self._decided(lane, name))

    def _run_ready(self, state: State, number: int) -> State:
        """The coordinator has it, and has heard it of the other."""
        lane = state.lanes[number][0]
        for name in lane.heard:
            if lane.stage == OPEN and name in lane.pending:
                lane = self._decided(lane, name)._replace(
                    heard=tuple(n for n in lane.heard if n != name)
                )
                state = self._post(self._set(state, number, 0, lane), number, 1, (RUN, name))
        return state

    @staticmethod
    def _decided(lane: Lane, name: str) -> Lane:
        return lane._replace(
            pending=tuple(n for n in lane.pending if n != name),
            running=(*lane.running, name),
        )

    # ---- Values -------------------------------------------------------------

    def _place(self, number: int) -> int:
        return 0 if "one_number" in self.faults else number

    def _post(self, state: State, number: int, to: int, letter: tuple) -> State:
        place = self._place(number)
        pair = state.mail[place]
        return state._replace(
            mail=put(state.mail, place, put(pair, to, (*pair[to], letter)))
        )

    def _take(self, state: State, number: int, me: int) -> State:
        place = self._place(number)
        pair = state.mail[place]
        return state._replace(mail=put(state.mail, place, put(pair, me, pair[me][1:])))

    @staticmethod
    def _with(state: State, rank: int, mine: Rank) -> State:
        return state._replace(ranks=put(state.ranks, rank, mine))

    @staticmethod
    def _set(state: State, number: int, me: int, lane: Lane) -> State:
        return state._replace(
            lanes=put(state.lanes, number, put(state.lanes[number], me, lane))
        )

    def _result(self, state: State, rank: int, number: int, name: str, is_done: bool) -> State:
        mine = state.ranks[rank]
        if any(known[:2] == (number, name) for known in mine.results):
            raise Broken(f"{rank} delivers {name} of set {number} twice")
        results = tuple(sorted((*mine.results, (number, name, is_done))))
        return self._with(state, rank, mine._replace(results=results))
