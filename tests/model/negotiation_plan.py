# SPDX-License-Identifier: Apache-2.0
"""The learned plan: the rules, and a model of them with log mode beneath.

1.  Generations. The set is in log mode or in plan mode; each change of mode is
    an entry of the log and begins a new generation. Frames of collectives carry
    (generation, sequence), the sequence counted from the start in each.
2.  PLAN(generation + 1) may be appended at any time in log mode, unless a member
    has joined. A member that applies it runs the plan from its beginning, with what
    it has pending, announced or not; it looks for a reason to deviate in what
    was pending, too. Announcements from before may still come; nothing is
    decided on them.
3.  In plan mode a member starts the next batch as soon as it has all of its
    operations, with the planned signatures. A batch is complete at a member
    only when all have started it. Kinds for which that does not hold, a
    broadcast say, are never planned.
4.  A member deviates, once in a generation, by DEVIATE to the coordinator when
    (a) it has an operation that is not in the plan with that signature, or
    joins; (b) a caller waits for an operation in no started batch, and the next
    batch lacks one here; (c) the same for a while without any member waiting, and
    something is pending; (d) a started batch takes too long.
    (c) alone is enough for nothing to hang; the others are faster.
5.  The coordinator appends HALT(generation) at the first DEVIATE; others come
    late and mean nothing. A member that applies HALT starts nothing more and answers
    HALTED(batches started), after all that it has announced before.
6.  When all have answered, RESUME(generation + 1, keep = the least of the
    answers) is appended; between HALT and RESUME nothing else is. A member
    that applies it is in log mode. Its batches from number keep on (the first is 0)
    are cancelled, and their operations pending again: no member has completed one
    of them, nor will. The batches before go on under their old numbers, and may
    still be in flight when those of the new generation start. It announces
    everything that it has pending, its join last.
7.  Records, and counters in shared memory, are cleared when RESUME is applied,
    in a host before it is published, and not at PLAN. All have answered HALT by
    then, so that no announcement of older days is still to come: announcements
    need no generation.

Messages take any time, but keep their order between two members. The tree of
log mode adds nothing to this and is left out: all talk to the coordinator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from explore import Broken

WAIT = "wait"
JOIN = ("join", "join")  # an operation like others, as far as the plan goes

RUN, ERROR, JOINED, PLAN, HALT, RESUME = "RUN", "ERROR", "JOINED", "PLAN", "HALT", "RESUME"
REQUEST, DEVIATE, HALTED = "REQUEST", "DEVIATE", "HALTED"
LOGGING, PLANNED, STOPPED = "log", "plan", "stopped"

BROADCAST = "broadcast"  # complete at its root, rank 0, before others start


class Given(NamedTuple):
    """An operation that a member has been given and has not delivered."""

    name: str
    signature: str
    thread: int
    use: int  # the how manieth use of the name by this member


class Batch(NamedTuple):
    """A started batch; what it holds is also what its frames would say."""

    generation: int
    sequence: int
    given: tuple


class Member(NamedTuple):
    items: tuple  # the next item of each thread
    uses: tuple = ()  # (name, uses), sorted
    pending: tuple = ()  # Given, sorted
    started: tuple = ()  # Batch: neither complete nor cancelled
    applied: int = 0
    mode: str = LOGGING
    generation: int = 0
    cursor: int = 0  # batches started in this generation
    deviated: bool = False
    failed: bool = False
    frames: tuple = ()  # Batch: what the others can see of it, for ever
    completed: tuple = ()  # (generation, sequence)


class State(NamedTuple):
    log: tuple
    members: tuple
    up: tuple  # messages on the way from each member to the coordinator
    records: tuple = ()  # (name, rank, signature), sorted
    halted: tuple = ()  # (rank, batches started), sorted
    dead: int = -1


def put(values: tuple, index: int, value) -> tuple:
    return (*values[:index], value, *values[index + 1 :])


class PlanMode:
    """The model. The plan is a tuple of batches, each a tuple of (name,
    signature); scripts are as for log mode. The coordinator appends PLAN up to
    `plans` times whenever it likes; if `learned`, once at the very beginning."""

    def __init__(self, scripts, plan, plans=1, learned=True, triggers="abcd", deaths=(),
                 whole=False, faults=()):
        self.scripts = scripts
        self.size = len(scripts)
        self.plan = plan
        self.planned = {op for batch in plan for op in batch}
        self.plans = plans
        self.learned = learned
        self.triggers = triggers
        self.deaths = deaths
        self.whole = whole  # also what _without_the_past() leaves out
        self.faults = frozenset(faults)
        self.has_joins = any(JOIN in thread for threads in scripts for thread in threads)

    # ---- The interface of explore() -----------------------------------------

    def start(self) -> State:
        members = tuple(Member((0,) * len(threads)) for threads in self.scripts)
        state = State((), members, ((),) * self.size)
        return self._append(state, (PLAN, 1)) if self.learned else state

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for event, after in self._events(state):
            yield event, self._without_the_past(after)

    def _events(self, state: State) -> Iterator[tuple[str, State]]:
        for rank, member in enumerate(state.members):
            if rank == state.dead or member.failed:
                continue
            if state.dead < 0 and rank in self.deaths:
                yield f"{rank} dies", state._replace(dead=rank)
            if state.dead >= 0:
                yield f"{rank} fails", self._with(state, rank, member._replace(failed=True))
            yield from self._submissions(state, rank)
            yield from self._starts(state, rank)
            yield from self._completions(state, rank)
            why = self._reason_to_deviate(state, rank)
            if why:
                gone = self._with(state, rank, member._replace(deviated=True))
                yield (
                    f"{rank} deviates ({why})",
                    self._tell(gone, rank, (DEVIATE,)),
                )
            if state.up[rank] and self._is_up(state, 0):
                message, *rest = state.up[rank]
                heard = state._replace(up=put(state.up, rank, tuple(rest)))
                yield f"0 hears {message} from {rank}", self._hear(heard, rank, message)
            if member.applied < len(state.log):
                yield f"{rank} applies {state.log[member.applied]}", self._apply(state, rank)
        if self._is_up(state, 0):
            yield from self._decisions(state)

    def complaint(self, state: State) -> str | None:
        for rank, member in enumerate(state.members):
            if rank == state.dead or member.failed:
                continue
            if state.dead >= 0:
                return f"{rank} does not know that {state.dead} has died"
            if member.pending or member.started:
                return f"{rank} waits for {member.pending} {member.started}"
            if any(self._item(member, rank, t) for t in range(len(member.items))):
                return f"{rank} has not come to its end"
        return None

    def _without_the_past(self, state: State) -> State:
        """The state without what can no longer matter, so that there are fewer.

        DEVIATE that comes late is dropped on the way; outside log mode records
        and announcements are, which rule 7 will clear; batches are forgotten
        when they are complete everywhere, or out of reach.
        """
        if self.whole:
            return state
        root = state.members[0]
        planned = root.mode == PLANNED
        if root.mode != LOGGING:
            matters = (DEVIATE, HALTED) if planned else (HALTED,)
            state = state._replace(records=(), up=tuple(
                tuple(m for m in queue if m[0] in matters) for queue in state.up
            ))
        oldest = min(member.generation for member in state.members)
        done = set.intersection(*(set(member.completed) for member in state.members))
        if "no_generation" not in self.faults:
            started = {b[:2] for member in state.members for b in member.started}
            done |= {f[:2] for member in state.members for f in member.frames
                     if f.generation < oldest and f[:2] not in started}
        return state._replace(members=tuple(
            member._replace(
                deviated=member.deviated and planned and member.generation == root.generation,
                frames=tuple(sorted(f for f in member.frames if f[:2] not in done)),
                completed=tuple(sorted(c for c in member.completed if c not in done)),
            )
            for member in state.members
        ))

    # ---- A member as its callers see it ------------------------------------

    def _under_way(self, member: Member) -> Iterator[Given]:
        yield from member.pending
        for batch in member.started:
            yield from batch.given

    def _waits(self, member: Member, rank: int, thread: int) -> bool:
        """Whether the thread waits for something that it gave."""
        script, at = self.scripts[rank][thread], member.items[thread]
        joining = at > 0 and script[at - 1] == JOIN
        if not joining and script[at : at + 1] != (WAIT,):
            return False
        return any(given.thread == thread for given in self._under_way(member))

    def _item(self, member: Member, rank: int, thread: int):
        """What the thread does next; None if it waits, or has ended."""
        if self._waits(member, rank, thread):
            return None
        items = [i for i in self.scripts[rank][thread][member.items[thread] :] if i != WAIT]
        return items[0] if items else None

    def _submissions(self, state: State, rank: int) -> Iterator[tuple[str, State]]:
        for thread in range(len(state.members[rank].items)):
            member = state.members[rank]
            item = self._item(member, rank, thread)
            if item is None:
                continue
            at = member.items[thread]
            at += self.scripts[rank][thread][at] == WAIT
            name, signature = item
            uses = {**dict(member.uses), name: dict(member.uses).get(name, 0) + 1}
            given = Given(name, signature, thread, uses[name])
            if any(name == other.name for other in self._under_way(member)):
                raise Broken(f"the script gives {name} twice to {rank}")
            member = member._replace(
                items=put(member.items, thread, at + 1),
                uses=tuple(sorted(uses.items())),
                pending=tuple(sorted((*member.pending, given))),
            )
            after = self._with(state, rank, member)
            if member.mode == LOGGING:
                after = self._request(after, rank, given)
            yield f"{rank} submits {name} {signature}", after

    # ---- Batches -------------------------------------------------------------

    def _next_batch(self, member: Member) -> tuple | None:
        """What the next batch of the plan holds, or None if it lacks something."""
        have = {(given.name, given.signature): given for given in member.pending}
        batch = self.plan[member.cursor % len(self.plan)]
        return tuple(have[op] for op in batch) if all(op in have for op in batch) else None

    def _starts(self, state: State, rank: int) -> Iterator[tuple[str, State]]:
        member = state.members[rank]
        may = member.mode == PLANNED
        if "starts_when_stopped" in self.faults:
            may = may or member.mode == STOPPED
        batch = self._next_batch(member) if may else None
        if batch:
            after = self._with(state, rank, self._begin(member, batch))
            yield f"{rank} starts {(member.generation, member.cursor)}", after

    @staticmethod
    def _begin(member: Member, given: tuple) -> Member:
        batch = Batch(member.generation, member.cursor, given)
        return member._replace(
            pending=tuple(p for p in member.pending if p not in given),
            started=(*member.started, batch),
            frames=(*member.frames, batch),
            cursor=member.cursor + 1,
        )

    def _completions(self, state: State, rank: int) -> Iterator[tuple[str, State]]:
        member = state.members[rank]
        for batch in member.started:
            if self._has_all_frames(state, rank, batch):
                self._check_complete(state, rank, batch)
                member = member._replace(
                    started=tuple(b for b in member.started if b != batch),
                    completed=(*member.completed, batch[:2]),
                )
                yield f"{rank} completes {batch[:2]}", self._with(state, rank, member)
                return  # in their order

    def _has_all_frames(self, state: State, rank: int, batch: Batch) -> bool:
        if rank == 0 and all(given.signature == BROADCAST for given in batch.given):
            return True
        for other in state.members:
            seen = [frame[:2] for frame in other.frames]
            if "no_generation" in self.faults:
                if not any(sequence == batch.sequence for _, sequence in seen):
                    return False
            elif batch[:2] not in seen:
                return False
        return True

    def _check_complete(self, state: State, rank: int, batch: Batch) -> None:
        """Seen from outside: all put the same uses of the same names together."""
        if all(given.signature == BROADCAST for given in batch.given):
            return
        for other, member in enumerate(state.members):
            theirs = [frame for frame in member.frames if frame[:2] == batch[:2]]
            if not theirs:
                raise Broken(f"{rank} completes {batch}, which {other} has not started")
            if [g[:2] + g[3:] for g in theirs[0].given] != [g[:2] + g[3:] for g in batch.given]:
                if not self.has_joins:
                    raise Broken(f"{rank} completes {batch}, but {other} has {theirs[0]}")

    # ---- Deviation -----------------------------------------------------------

    def _reason_to_deviate(self, state: State, rank: int) -> str:
        member, root = state.members[rank], state.members[0]
        if member.mode != PLANNED or member.deviated:
            return ""
        if root.mode != PLANNED or member.generation != root.generation:
            return ""  # it would come late
        lacks = not self._next_batch(member)
        pending = {given.thread for given in member.pending}
        reasons = {
            "a": any(given[:2] not in self.planned for given in member.pending),
            "b": lacks and any(self._waits(member, rank, thread) for thread in pending),
            "c": lacks and bool(pending),
            "d": bool(member.started),
        }
        return next((why for why in self.triggers if reasons[why]), "")

    # ---- To the coordinator --------------------------------------------------

    def _request(self, state: State, rank: int, given: Given) -> State:
        return self._tell(state, rank, (REQUEST, given.name, given.signature))

    def _tell(self, state: State, rank: int, message: tuple) -> State:
        if rank == 0:
            return self._hear(state, 0, message)
        return state._replace(up=put(state.up, rank, (*state.up[rank], message)))

    def _hear(self, state: State, rank: int, message: tuple) -> State:
        kind, *fields = message
        root = state.members[0]
        if kind == DEVIATE:
            late = root.mode != PLANNED
            return state if late else self._append(state, (HALT, root.generation))
        if kind == HALTED:
            return state._replace(halted=tuple(sorted((*state.halted, (rank, *fields)))))
        name, signature = fields
        if any(record[:2] == (name, rank) for record in state.records):
            raise Broken(f"{rank} announces {name} twice")
        return state._replace(records=tuple(sorted((*state.records, (name, rank, signature)))))

    def _append(self, state: State, entry: tuple) -> State:
        state = state._replace(log=(*state.log, entry))
        return self._apply(state, 0)

    def _decisions(self, state: State) -> Iterator[tuple[str, State]]:
        root = state.members[0]
        joined = {rank for name, rank, _ in state.records if name == JOIN[0]}
        if root.mode == STOPPED and len(state.halted) == self.size:
            answers = [started for _, started in state.halted]
            keep = max(answers) if "keep_most" in self.faults else min(answers)
            entry = (RESUME, root.generation + 1, keep)
            cleared = state._replace(halted=(), records=())
            if "cleared_at_plan" in self.faults:
                cleared = state._replace(halted=())
            yield f"0 appends {entry}", self._append(cleared, entry)
        if root.mode != LOGGING:
            return
        if sum(entry[0] == PLAN for entry in state.log) < self.plans and not joined:
            entry = (PLAN, root.generation + 1)
            yield f"0 appends {entry}", self._append(state._replace(records=()), entry)
        for name in {name for name, _, _ in state.records} - {JOIN[0]}:
            have = {rank: signature for known, rank, signature in state.records if known == name}
            if len(have.keys() | joined) < self.size:
                continue
            kind = RUN if len(set(have.values())) == 1 else ERROR
            rest = tuple(record for record in state.records if record[0] != name)
            entry = (kind, name)
            yield f"0 appends {entry}", self._append(state._replace(records=rest), entry)
        if len(joined) == self.size and len(state.records) == self.size:
            yield "0 appends JOINED", self._append(state._replace(records=()), (JOINED, JOIN[0]))

    # ---- The log ---------------------------------------------------------------

    def _apply(self, state: State, rank: int) -> State:
        member = state.members[rank]
        kind, *fields = state.log[member.applied]
        member = member._replace(applied=member.applied + 1)
        if kind == PLAN:
            member = member._replace(
                mode=PLANNED, generation=fields[0], cursor=0, deviated=False
            )
        elif kind == HALT:
            state = self._with(state, rank, member._replace(mode=STOPPED))
            return self._tell(state, rank, (HALTED, member.cursor))
        elif kind == RESUME:
            return self._resume(state, rank, member, *fields)
        else:
            given = tuple(g for g in member.pending if g.name == fields[0])
            if not given and not any(g[:2] == JOIN for g in member.pending):
                raise Broken(f"{rank} applies {kind} {fields[0]}, which it has not submitted")
            if kind == RUN:
                member = self._begin(member, given)
            else:
                left = tuple(g for g in member.pending if g not in given)
                member = member._replace(pending=left)
        return self._with(state, rank, member)

    def _resume(self, state: State, rank: int, member: Member, generation: int, keep: int):
        cancelled = [
            b for b in member.started if b.generation == member.generation and b.sequence >= keep
        ]
        for batch in cancelled:
            if any(batch[:2] in other.completed for other in state.members):
                raise Broken(f"{rank} cancels {batch}, which a member has completed")
        for where, number in member.completed:
            if where == member.generation and number >= keep:
                raise Broken(f"{rank} has completed {(where, number)}, which is cancelled")
        again = [given for batch in cancelled for given in batch.given]
        member = member._replace(
            mode=LOGGING, generation=generation, cursor=0, deviated=False,
            started=tuple(b for b in member.started if b not in cancelled),
            pending=tuple(sorted((*member.pending, *again))),
        )
        state = self._with(state, rank, member)
        join_last = sorted(member.pending, key=lambda given: given[:2] == JOIN)
        for given in member.pending if "join_not_last" in self.faults else join_last:
            if "cancelled_is_silent" not in self.faults or given not in again:
                state = self._request(state, rank, given)
        return state

    # ---- Values ----------------------------------------------------------------

    def _is_up(self, state: State, rank: int) -> bool:
        return rank != state.dead and not state.members[rank].failed

    @staticmethod
    def _with(state: State, rank: int, member: Member) -> State:
        return state._replace(members=put(state.members, rank, member))
