# SPDX-License-Identifier: Apache-2.0
"""The change of terms among ranks of several hosts: rules and model.

Steps, and what it means to have one, are those of repair.py. Here no memory is shared:
the store is the only one that decides, by the order in which it has heard what ranks
say. All read its words in this order, each at its own pace, and draw the same conclusions.

1.  A member delivers step k when it has heard that every member has it (a barrier behind
    each step, so a member that has left the barrier knows that all have entered it).
2.  A member that loses another one, or reads that a member of its term is gone or has
    frozen, freezes: it stops, and then says FROZEN(term + 1, steps that it has).
3.  The store says GONE(m, m) when the connection with m has ended, after all that m had
    said before. A member that finds the host of m silent says GONE(m, itself), which does
    not count if the member that says it is gone by then: so of two sides that do not see
    each other one goes on, and the other stops.
4.  The vote for a term ends with the first word after which each of its candidates is
    frozen or gone. Survivors are those that are not gone, K is the least that one of them
    has. The candidates are the members of the last term that was voted for.
5.  A survivor says OFFERED. If all have said so before one of them is gone, the term
    begins; else there is a vote for the next one. Both follow from the order of words.
6.  A survivor of a term that begins delivers what it has of the steps below K, with the
    members of the old term, and runs again what it has beyond.
7.  A member that reads that it is gone itself stops for good.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from explore import Broken

RUNNING, FROZEN, MEETING, DEAD, OUT = "running", "frozen", "meeting", "dead", "out"


class Ballot(NamedTuple):
    """What follows from the words read so far."""

    term: int = 2  # that is voted for, or begins
    candidates: tuple = ()
    frozen: tuple = ()  # (member, has) of this term
    gone: frozenset = frozenset()
    survivors: tuple = ()  # once the vote has ended
    limit: int = 0
    offered: frozenset = frozenset()
    last: tuple = ()  # (term, survivors, limit, whether it began) of the term before


class Rank(NamedTuple):
    stage: str = RUNNING
    term: int = 1  # in force
    members: tuple = ()
    started: int = 0
    has: int = 0
    holds: bool = False
    given: int = 0
    results: tuple = ()
    past: tuple = ()  # (started, has) of the terms before: what others may have heard
    waits_for: int = 1  # the term, once it is frozen
    says: tuple = ()  # what the store has not heard yet
    read: int = 0  # words
    ballot: Ballot = Ballot()


class State(NamedTuple):
    ranks: tuple
    words: tuple = ()  # in the order in which the store heard them
    kills: int = 0
    cuts: int = 0
    buried: frozenset = frozenset()  # of whose end the store has heard


def count(ballot: Ballot, word: tuple, faults: frozenset) -> Ballot:
    """The ballot after one more word."""
    kind = word[0]
    if kind == "gone":
        _, member, speaker = word
        if speaker != member and speaker in ballot.gone and "hears_the_dead" not in faults:
            return ballot
        ballot = ballot._replace(gone=ballot.gone | {member})
    elif kind == "frozen" and word[1] == ballot.term and not ballot.survivors:
        ballot = ballot._replace(frozen=(*ballot.frozen, word[2:]))
    elif kind == "offered" and word[1] == ballot.term:
        ballot = ballot._replace(offered=ballot.offered | {word[2]})
    return _meet(ballot) if ballot.survivors else _vote(ballot, faults)


def _vote(ballot: Ballot, faults: frozenset) -> Ballot:
    frozen = {member for member, _ in ballot.frozen}
    if not all(one in frozen or one in ballot.gone for one in ballot.candidates):
        return ballot
    alive = [(one, has) for one, has in ballot.frozen if one not in ballot.gone]
    if not alive:
        return ballot
    least = max if "most" in faults else min
    return ballot._replace(
        survivors=tuple(sorted(one for one, _ in alive)),
        limit=least(has for _, has in alive),
        offered=frozenset(),
    )


def _meet(ballot: Ballot) -> Ballot:
    began = set(ballot.survivors) <= ballot.offered
    if not began and not ballot.gone & set(ballot.survivors):
        return ballot
    return Ballot(
        term=ballot.term + 1,
        candidates=ballot.survivors,
        gone=ballot.gone,
        last=(ballot.term, ballot.survivors, ballot.limit, began),
    )


class RepairHosts:
    """The model: ranks that run some operations; a few are killed, or cut off."""

    def __init__(self, ranks=3, operations=1, kills=1, cuts=0, faults=()):
        self.size = ranks
        self.operations = operations
        self.kills = kills
        self.cuts = cuts
        self.faults = frozenset(faults)

    # ---- The interface of explore() -----------------------------------------

    def start(self) -> State:
        members = tuple(range(self.size))
        return State((Rank(members=members, ballot=Ballot(candidates=members)),) * self.size)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for me, rank in enumerate(state.ranks):
            if rank.says:
                yield f"the store hears {rank.says[0]}", self._hear(state, me)
            if rank.stage == DEAD and me not in state.buried:
                buried = self._say(state, ("gone", me, me))
                buried = buried._replace(buried=state.buried | {me})
                yield f"the store misses {me}", self._set(buried, me, says=())
            if rank.stage in (DEAD, OUT):
                continue
            if rank.read < len(state.words):
                yield f"{me} reads {state.words[rank.read]}", self._read(state, me)
            if state.kills < self.kills:
                dead = self._set(state, me, stage=DEAD)
                yield f"{me} is killed", dead._replace(kills=state.kills + 1)
            if me in rank.ballot.gone:
                yield f"{me} stops for good", self._set(state, me, stage=OUT)
            elif rank.stage == RUNNING:
                yield from self._run(state, me, rank)
            elif rank.stage == FROZEN:
                yield from self._await_vote(state, me, rank)
            else:
                yield from self._await_all(state, me, rank)

    def complaint(self, state: State) -> str | None:
        for me, rank in enumerate(state.ranks):
            if rank.stage not in (DEAD, OUT) and len(rank.results) < self.operations:
                return f"{me} waits for operation {len(rank.results)} while it is {rank.stage}"
        if state.cuts and all(rank.stage in (DEAD, OUT) for rank in state.ranks):
            return None if state.kills else "both sides have stopped"
        return None

    # ---- The store ----------------------------------------------------------

    @staticmethod
    def _say(state: State, word: tuple) -> State:
        return state._replace(words=(*state.words, word))

    def _hear(self, state: State, me: int) -> State:
        says = state.ranks[me].says
        return self._set(self._say(state, says[0]), me, says=says[1:])

    def _read(self, state: State, me: int) -> State:
        rank = state.ranks[me]
        ballot = count(rank.ballot, state.words[rank.read], self.faults)
        return self._set(state, me, read=rank.read + 1, ballot=ballot)

    # ---- A term -------------------------------------------------------------

    def _run(self, state: State, me: int, rank: Rank) -> Iterator[tuple[str, State]]:
        others = [state.ranks[member] for member in rank.members]
        if len(rank.results) < self.operations and rank.started == rank.given:
            yield f"{me} starts {rank.started}", self._set(state, me, started=rank.started + 1)
        if rank.started > rank.has and all(self._started(o, rank) for o in others):
            yield f"{me} has {rank.has}", self._set(state, me, has=rank.has + 1, holds=True)
        if rank.holds and (
            "deliver_at_once" in self.faults or all(self._has(o, rank) for o in others)
        ):
            yield f"{me} delivers {rank.given}", self._deliver(state, me)
        ballot = rank.ballot
        is_called = ballot.term == rank.term + 1 and (
            ballot.frozen or ballot.gone & set(rank.members)
        )
        if is_called or any(other.stage in (DEAD, OUT) for other in others):
            yield f"{me} freezes", self._freeze(state, me, rank.term + 1)
        if state.cuts < self.cuts and ballot.term == rank.term + 1:
            for other in rank.members:
                if other == me or state.ranks[other].stage in (DEAD, OUT):
                    continue
                cut = self._freeze(state, me, rank.term + 1, ("gone", other, me))
                yield f"{me} finds {other} silent", cut._replace(cuts=state.cuts + 1)

    def _started(self, other: Rank, rank: Rank) -> bool:
        return self._in_term(other, rank.term)[0] > rank.has

    def _has(self, other: Rank, rank: Rank) -> bool:
        return self._in_term(other, rank.term)[1] > rank.given

    @staticmethod
    def _in_term(other: Rank, term: int) -> tuple:
        if other.term == term:
            return other.started, other.has
        return dict(other.past).get(term, (0, 0))

    def _deliver(self, state: State, me: int) -> State:
        rank = state.ranks[me]
        number = len(rank.results)
        for other in state.ranks:
            if len(other.results) > number and other.results[number] != rank.members:
                raise Broken(f"operation {number} is delivered from different inputs")
        return self._set(
            state, me, holds=False, given=rank.given + 1,
            results=(*rank.results, rank.members),
        )  # fmt: skip

    # ---- The change ---------------------------------------------------------

    def _freeze(self, state: State, me: int, term: int, *more: tuple) -> State:
        rank = state.ranks[me]
        word = ("frozen", term, me, rank.has)
        return self._set(
            state, me, stage=FROZEN, waits_for=term, says=(*rank.says, *more, word)
        )  # fmt: skip

    def _await_vote(self, state: State, me: int, rank: Rank) -> Iterator[tuple[str, State]]:
        ballot = rank.ballot
        has_ended = ballot.last and ballot.last[0] == rank.waits_for
        if not has_ended and not (ballot.term == rank.waits_for and ballot.survivors):
            return
        if has_ended:  # one more was gone, before this member could offer
            if ballot.last[3]:
                raise Broken(f"{me} has not offered, and the term began")
            yield f"{me} gives up", self._freeze(state, me, rank.waits_for + 1)
            return
        if "settle_at_once" in self.faults:
            state = self._settle(state, me, ballot.limit)
        word = ("offered", rank.waits_for, me)
        yield f"{me} offers", self._set(state, me, stage=MEETING, says=(*rank.says, word))

    def _await_all(self, state: State, me: int, rank: Rank) -> Iterator[tuple[str, State]]:
        ballot = rank.ballot
        term = rank.waits_for
        if "counts_now" in self.faults:
            # As it looks to this member now, and not by the order of words.
            ballot = self._look(state, rank)
        if not ballot.last or ballot.last[0] != term:
            return
        _, survivors, limit, began = ballot.last
        if not began:
            yield f"{me} gives up", self._freeze(state, me, term + 1)
            return
        if me not in survivors:
            raise Broken(f"{me} goes on, and is no survivor")
        for other in state.ranks:
            if other.term == term and other.members != survivors:
                raise Broken(f"term {term} has two memberships")
        if "settle_at_once" not in self.faults:
            state = self._settle(state, me, limit)
        yield (
            f"{me} begins {term}",
            self._set(
                state, me, stage=RUNNING, term=term, members=survivors, started=0, has=0,
                holds=False, given=0, past=((rank.term, (rank.started, rank.has)),),
            ),
        )  # fmt: skip

    def _look(self, state: State, rank: Rank) -> Ballot:
        ballot = rank.ballot
        if ballot.term == rank.waits_for and ballot.survivors:
            dead = {one for one in ballot.survivors if state.ranks[one].stage == DEAD}
            if dead:
                return ballot._replace(last=(ballot.term, ballot.survivors, 0, False))
        return ballot

    def _settle(self, state: State, me: int, limit: int) -> State:
        rank = state.ranks[me]
        if rank.given > limit:
            raise Broken(f"{me} has delivered step {rank.given - 1}, which runs again")
        if rank.given == limit:
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
