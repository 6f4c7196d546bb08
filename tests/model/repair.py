# SPDX-License-Identifier: Apache-2.0
"""The change of terms after a death, among ranks that share memory: rules and model.

A step is what a formation's members carry out together: a collective, or an end of
an operation that all read in the log. Each member counts its own.

1.  A member whose share of a step is complete HAS the step, and publishes how many it
    has. It delivers step k when every member has k: so what one member has delivered,
    all have. Inputs, and what is complete but not delivered, stay whole until then.
2.  A member that sees that another is gone, or has frozen for a later term,
    freezes: it stops, and then publishes the term that it is frozen for.
3.  A member that sees each other one frozen or gone proposes: the members that are
    frozen are the survivors, and K is the least that one of them has. One word in
    memory takes the first proposal of each term; that is the decision. A proposal
    stays until all are frozen for the term after it, for others may still read it.
4.  Each survivor offers memory for the new term, and has met when all have offered.
    A survivor that is gone before it has offered ends the attempt: the others freeze
    for the term after that. Whether it is gone is looked at before the offer.
5.  A survivor that has met delivers what it has of the steps below K, with the members
    of the old term. It drops what it has beyond, and runs that again in the new term.
6.  A member that has ended its program leaves, and is gone as one that died.

Deaths are certain: a process that is gone writes nothing any more, and all that it
wrote before can be seen. Left to arbitrary delay: everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from explore import Broken

RUNNING, FROZEN, MEETING, GONE = "running", "frozen", "meeting", "gone"


class Rank(NamedTuple):
    stage: str = RUNNING
    term: int = 1  # in force
    members: tuple = ()  # of that term
    started: int = 0  # steps of this term that it takes part in
    has: int = 0  # steps of this term that are complete here
    holds: bool = False  # the result of one that is not delivered
    given: int = 0  # steps of this term that are delivered
    results: tuple = ()  # of each operation: whose inputs are in it
    frozen: int = 1  # the term that it waits for, once it is frozen
    candidates: tuple = ()  # who that can consist of
    proposal: tuple = ()  # (term, survivors, K), in its line
    decision: tuple = ()  # the same, as it has read it
    offered: int = 1  # the latest term that it has memory for
    missing: tuple = ()  # at fault: had not offered when it last looked


class State(NamedTuple):
    ranks: tuple
    decisions: tuple = ()  # (term, who has proposed it), ascending
    kills: int = 0


class Repair:
    """The model: ranks that run some operations, of which a few are killed."""

    def __init__(self, ranks=3, operations=2, kills=1, leaves=False, faults=()):
        self.size = ranks
        self.operations = operations
        self.kills = kills
        self.leaves = leaves
        self.faults = frozenset(faults)

    # ---- The interface of explore() -----------------------------------------

    def start(self) -> State:
        return State((Rank(members=tuple(range(self.size))),) * self.size)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for me, rank in enumerate(state.ranks):
            if rank.stage == GONE:
                continue
            if state.kills < self.kills:
                killed = self._set(state, me, stage=GONE)
                yield f"{me} is killed", killed._replace(kills=state.kills + 1)
            if rank.stage == RUNNING:
                yield from self._run(state, me, rank)
            elif rank.stage == FROZEN:
                yield from self._decide(state, me, rank)
            else:
                yield from self._meet(state, me, rank)

    def complaint(self, state: State) -> str | None:
        for me, rank in enumerate(state.ranks):
            if rank.stage != GONE and len(rank.results) < self.operations:
                return f"{me} waits for operation {len(rank.results)} while it is {rank.stage}"
        return None

    # ---- A term -------------------------------------------------------------

    def _run(self, state: State, me: int, rank: Rank) -> Iterator[tuple[str, State]]:
        others = [state.ranks[member] for member in rank.members]
        is_waiting = len(rank.results) < self.operations
        if is_waiting and rank.started == rank.given:
            yield f"{me} starts {rank.started}", self._set(state, me, started=rank.started + 1)
        if rank.started > rank.has and all(self._started(o, rank) for o in others):
            yield (
                f"{me} has {rank.has}",
                self._set(state, me, has=rank.has + 1, holds=True),
            )
        if rank.holds and (
            "deliver_at_once" in self.faults or all(self._has(o, rank) for o in others)
        ):
            yield f"{me} delivers {rank.given}", self._deliver(state, me)
        if self.leaves and not is_waiting:
            yield f"{me} leaves", self._set(state, me, stage=GONE)
        is_called = any(other.frozen > rank.term for other in others)
        if is_called or any(other.stage == GONE for other in others):
            yield f"{me} freezes", self._freeze(state, me, rank.term + 1, rank.members)

    @staticmethod
    def _started(other: Rank, rank: Rank) -> bool:
        return (other.term, other.started) > (rank.term, rank.has)

    @staticmethod
    def _has(other: Rank, rank: Rank) -> bool:
        return (other.term, other.has) > (rank.term, rank.given)

    def _deliver(self, state: State, me: int) -> State:
        rank = state.ranks[me]
        number = len(rank.results)
        for other in state.ranks:
            if len(other.results) > number and other.results[number] != rank.members:
                raise Broken(f"operation {number} is delivered from different inputs")
        return self._set(
            state,
            me,
            holds=False,
            given=rank.given + 1,
            results=(*rank.results, rank.members),
        )

    # ---- The change ---------------------------------------------------------

    def _freeze(self, state: State, me: int, term: int, candidates: tuple) -> State:
        kept = () if "clears_early" in self.faults else state.ranks[me].proposal
        return self._set(
            state,
            me,
            stage=FROZEN,
            frozen=term,
            candidates=candidates,
            missing=(),
            proposal=kept,
        )

    def _decide(self, state: State, me: int, rank: Rank) -> Iterator[tuple[str, State]]:
        decision = self._decision(state, me)
        if decision is not None:
            yield f"{me} hears {decision}", self._begin(state, me, decision)
            return
        if rank.proposal and rank.proposal[0] == rank.frozen:
            decisions = (*state.decisions, (rank.frozen, me))
            yield f"{me} decides", state._replace(decisions=decisions)
            return
        alive = [m for m in rank.candidates if state.ranks[m].stage != GONE]
        if all(state.ranks[m].frozen >= rank.frozen for m in alive):
            least = max if "most" in self.faults else min
            k = least(state.ranks[m].has for m in alive)
            proposal = (rank.frozen, tuple(alive), k)
            yield f"{me} proposes {proposal}", self._set(state, me, proposal=proposal)

    def _decision(self, state: State, me: int) -> tuple | None:
        rank = state.ranks[me]
        if "each_decides" in self.faults:
            is_mine = rank.proposal and rank.proposal[0] == rank.frozen
            return rank.proposal if is_mine else None
        for term, author in state.decisions:
            if term == rank.frozen:
                proposal = state.ranks[author].proposal
                if not proposal or proposal[0] != term:
                    raise Broken(f"{me} reads a proposal that is gone")
                return proposal
        return None

    def _begin(self, state: State, me: int, decision: tuple) -> State:
        rank = state.ranks[me]
        if me not in decision[1]:
            raise Broken(f"{me} is there, and no survivor")
        if "settle_at_once" in self.faults:
            state = self._settle(state, me, decision[2])
        return self._set(state, me, stage=MEETING, offered=rank.frozen, decision=decision)

    def _meet(self, state: State, me: int, rank: Rank) -> Iterator[tuple[str, State]]:
        term, survivors, k = rank.decision
        absent = tuple(m for m in survivors if state.ranks[m].offered < term)
        if not absent:
            if "settle_at_once" not in self.faults:
                state = self._settle(state, me, k)
            yield (
                f"{me} meets",
                self._set(
                    state,
                    me,
                    stage=RUNNING,
                    term=term,
                    members=survivors,
                    started=0,
                    has=0,
                    holds=False,
                    given=0,
                    missing=(),
                ),
            )
        looked = rank.missing if "looks_late" in self.faults else absent
        if any(state.ranks[m].stage == GONE for m in looked):
            yield f"{me} gives up", self._freeze(state, me, term + 1, survivors)
        elif "looks_late" in self.faults and absent and looked != absent:
            yield f"{me} looks", self._set(state, me, missing=absent)

    def _settle(self, state: State, me: int, k: int) -> State:
        rank = state.ranks[me]
        if rank.given > k:
            raise Broken(f"{me} has delivered step {rank.given - 1}, which runs again")
        if rank.given == k:
            return self._set(state, me, holds=False)
        if not rank.holds:
            raise Broken(f"{me} is to deliver step {rank.given}, and has it not")
        return self._deliver(state, me)

    # ---- Values -------------------------------------------------------------

    @staticmethod
    def _set(state: State, me: int, **changes) -> State:
        ranks = state.ranks
        changed = ranks[me]._replace(**changes)
        return state._replace(ranks=(*ranks[:me], changed, *ranks[me + 1 :]))
