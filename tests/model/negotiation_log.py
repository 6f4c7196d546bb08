# SPDX-License-Identifier: Apache-2.0
"""Log mode of the negotiation in a process set: the rules, and a model of them.

Words. A *member* submits operations, each with a name and a signature (kind,
dtype, shape, reduction, root, scales, device; not the first dimension of an
allgather or alltoall). The *coordinator* is the lowest member. Members form a
tree with the coordinator on top; in a host the tree is one level, its leader
and the others. The part of the tree at and below a member is its *share*.

1.  The log. Only the coordinator appends. Its entries go down the tree, in
    order: a member applies an entry before any member below it can see it (in a
    host: before it publishes the entry). Everything that members agree on, the
    table included, is a function of the entries that they have applied.
2.  Announcements. Each member keeps a *record* for every name that is in
    flight in its share: what itself and each child have announced. When each of
    them has announced the name, or has joined with its whole share, the member
    announces it to its parent, once: READY(slot, count, rank) if all have one
    signature and the table has a live slot for name and signature, else
    REQUEST(name, count, (signature, lowest rank that has it)...). The count is
    that of the members who submitted. Applying RUN or ERROR for a name removes
    its record; what arrives afterwards is about the next use of the name.
3.  The name alone is the key. The kind is a part of the signature.
4.  When the coordinator's record is full, it appends RUN if there is one
    signature, else ERROR with two signatures and a rank for each. So an error
    is logged only when no member can still submit to what failed, every member
    that submitted gets it, and the next use of the name is a fresh one. Which
    full records make up one RUN, and in what order, is free: fusion.
5.  RUN carries for each operation its slot, or name and signature (and, if one
    was given, the slot that they have from now on), and the count.
6.  Slots. LIVE: announced by number. RETIRED, by an entry of the log: no
    member that has applied that entry announces by that number, but it still means
    what it meant. FREE: retired, and every member has acknowledged it. Only a
    free slot is given away; if there is none, the name gets no slot this time,
    and the least recently used one is retired for the next. A name whose
    signature has changed has its slot retired. Acknowledgement: every message
    up the tree carries `seen`, how many retirements all of the sender's share
    have applied (the least of its own and its children's). With that, no number
    in flight can be misread, and slots need no generation.
7.  Unnamed operations are named by their sequence number in the set, get no
    slot, and the numbers begin again at JOINED: members that had joined have
    not counted along.
8.  Join. JOIN(rank) goes up at once; every member on the way first announces
    the records that became full by it, then passes it on. A member that has joined
    counts as having announced everything, and what it had submitted before
    still counts as submitted: a record is full when every member has submitted
    or joined, which is not the same as "submitted = members - joined". A count
    below the size of the set says that a member supplies zeros; then kinds
    that cannot do that get ERROR. When all have joined and no record is left,
    JOINED(the rank whose JOIN came last) is appended, and all forget who had
    joined. Between its join and JOINED a member refuses submissions.
9.  A name that a member has in flight is refused there, by the member alone.
10. Death. A member that sees a neighbour in the tree die, or hears that the set has
    failed, fails everything it has and tells its neighbours the first cause.
    A collective is delivered only when all members have started it.

What the model leaves to arbitrary delay: threads, the way of each message up
the tree, the application of each entry, the decisions of the coordinator. An
announcement in a host may pass through a counter in shared memory: READY then
takes no time, and overtakes what its sender has told by message before; so does
`seen`, a word that the sender stores after having applied the entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from explore import Broken

WAIT = "wait"  # an item of a script: until all that this thread gave is there
JOIN = "join"
UNNAMED = ""

RUN, ERROR, JOINED = "RUN", "ERROR", "JOINED"
READY, REQUEST = "READY", "REQUEST"

NO_ZEROS = "gather"  # signatures of this kind have no use for zeros


class Op(NamedTuple):
    """An operation in RUN."""

    name: str
    signature: str
    slot: int | None
    is_new: bool  # the slot is given by this very entry
    count: int


class Member(NamedTuple):
    items: tuple  # the next item of each thread
    pending: tuple = ()  # (name, signature, thread), sorted; undelivered
    running: tuple = ()  # indices in the log of collectives not yet complete
    applied: int = 0  # entries of the log
    unnamed: int = 0
    joined: bool = False
    failed: bool = False
    # As a place in the tree:
    records: tuple = ()  # Record, sorted
    joined_below: tuple = ()  # ranks of the share, in the order of JOIN
    seen_below: tuple = ()  # for each child


class Record(NamedTuple):
    name: str
    parts: tuple  # (child or oneself, count, ((signature, rank), ...)), sorted
    announced: bool = False


class State(NamedTuple):
    log: tuple
    members: tuple
    up: tuple  # messages on the way from each member to its parent
    dead: int = -1


class Table(NamedTuple):
    slots: tuple  # None, or (name, signature, last use, retirement or 0)
    retirements: int


@cache
def table_after(log: tuple, capacity: int) -> Table:
    """The table of a member that has applied these entries and no more."""
    if not log:
        return Table((None,) * capacity, 0)
    slots, retirements = table_after(log[:-1], capacity)
    slots = list(slots)
    if log[-1][0] == RUN:
        _, ops, retired = log[-1]
        for op in ops:
            if op.slot is not None:
                slots[op.slot] = (op.name, op.signature, len(log), 0)
        for slot in retired:
            retirements += 1
            slots[slot] = (*slots[slot][:3], retirements)
    return Table(tuple(slots), retirements)


def put(values: tuple, index: int, value) -> tuple:
    return (*values[:index], value, *values[index + 1 :])


def merged(parts: tuple) -> tuple[int, tuple]:
    """The count and the signatures, with the lowest rank of each, of parts."""
    lowest: dict[str, int] = {}
    for _, _, signatures in parts:
        for signature, rank in signatures:
            lowest[signature] = min(rank, lowest.get(signature, rank))
    return sum(count for _, count, _ in parts), tuple(sorted(lowest.items()))


class LogMode:
    """The model. A script is, for each member, a tuple of threads, each of them
    a tuple of items: WAIT, JOIN, or (name, signature). `faults` are departures
    from the rules, to see that they are missed."""

    def __init__(self, scripts, slots=0, parent=(None, 0, 1), deaths=(), faults=(),
                 stalls=False, in_host=()):
        self.scripts = scripts
        self.size = len(scripts)
        self.capacity = slots
        self.parent = parent
        self.deaths = deaths  # the ranks that may die
        self.faults = frozenset(faults)
        self.in_host = in_host  # the ranks that share memory with their parent
        self.stalls = stalls  # scripts may leave a member alone with a name
        self.children = [
            [c for c in range(self.size) if parent[c] == m] for m in range(self.size)
        ]
        self.share = [self._share(m) for m in range(self.size)]

    def _share(self, rank: int) -> frozenset:
        below = (self._share(child) for child in self.children[rank])
        return frozenset({rank}).union(*below)

    # ---- The interface of explore() -----------------------------------------

    def start(self) -> State:
        members = tuple(
            Member((0,) * len(self.scripts[m]), seen_below=(0,) * len(self.children[m]))
            for m in range(self.size)
        )
        return State((), members, ((),) * self.size)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for rank, member in enumerate(state.members):
            if rank == state.dead or member.failed:
                continue
            if state.dead < 0 and rank in self.deaths:
                yield f"{rank} dies", state._replace(dead=rank)
            if self._hears_of_death(state, rank):
                yield f"{rank} fails", self._with(state, rank, member._replace(failed=True))
            yield from self._submissions(state, rank)
            if state.up[rank] and self._is_up(state, self.parent[rank]):
                yield self._receive(state, rank)
            if rank and member.applied < self._visible(state, rank):
                yield f"{rank} applies {state.log[member.applied]}", self._apply(state, rank)
            if member.running and all(m.applied > member.running[0] for m in state.members):
                yield f"{rank} completes {member.running[0]}", self._complete(state, rank)
        if self._is_up(state, 0):
            yield from self._decisions(state)

    def complaint(self, state: State) -> str | None:
        for rank, member in enumerate(state.members):
            if rank == state.dead or member.failed:
                continue
            if state.dead >= 0:
                return f"{rank} does not know that {state.dead} has died"
            if member.joined and not (self.stalls and any(not m.joined for m in state.members)):
                return f"{rank} waits in join"
            waits = [name for name, _, _ in member.pending if not self._stalled(state, name)]
            if waits or member.running:
                return f"{rank} waits for {waits}"
            if self.stalls:
                continue
            if any(self._item(state, rank, t) for t in range(len(member.items))):
                return f"{rank} has not come to its end"
            if member.records or member.joined_below:
                return f"{rank} still has {member.records} {member.joined_below}"
        return None

    def _stalled(self, state: State, name: str) -> bool:
        """Whether the scripts are to blame: a member never gives the name."""
        return self.stalls and not all(
            member.joined or self._has(state, rank, name)
            for rank, member in enumerate(state.members)
        )

    # ---- A member as its callers see it ------------------------------------

    def _item(self, state: State, rank: int, thread: int):
        """What the thread does next; None if it waits, or has ended."""
        member = state.members[rank]
        items = self.scripts[rank][thread][member.items[thread] :]
        if items and items[0] == WAIT:
            if any(owner == thread for _, _, owner in member.pending):
                return None
            items = items[1:]
        at = len(self.scripts[rank][thread]) - len(items)
        if at and self.scripts[rank][thread][at - 1] == JOIN and member.joined:
            return None
        return items[0] if items else None

    def _submissions(self, state: State, rank: int) -> Iterator[tuple[str, State]]:
        for thread in range(len(state.members[rank].items)):
            item = self._item(state, rank, thread)
            if item is None:
                continue
            member = state.members[rank]
            script = self.scripts[rank][thread]
            at = member.items[thread] + (script[member.items[thread]] == WAIT)
            member = member._replace(items=put(member.items, thread, at + 1))
            if item == JOIN:
                joined = self._with(state, rank, member._replace(joined=True))
                yield f"{rank} joins", self._note_join(joined, rank, rank)
                continue
            name, signature = item
            if name == UNNAMED:
                name = f"#{member.unnamed}"
            if member.joined or any(name == known for known, _, _ in member.pending):
                yield f"{rank} is refused {name}", self._with(state, rank, member)
                continue
            member = member._replace(
                pending=tuple(sorted((*member.pending, (name, signature, thread)))),
                unnamed=member.unnamed + (item[0] == UNNAMED),
            )
            yield (
                f"{rank} submits {name} {signature}",
                self._note(
                    self._with(state, rank, member), rank,
                    self._key(name, signature), (rank, 1, ((signature, rank),)),
                ),
            )

    def _key(self, name: str, signature: str) -> str:
        if "kind_in_key" in self.faults:
            return f"{signature.split()[0]}.{name}"
        return name

    # ---- Announcements, up the tree ----------------------------------------

    def _note(self, state: State, rank: int, name: str, part: tuple) -> State:
        """The member, or a child of it, has announced a name to the member."""
        records = {record.name: record for record in state.members[rank].records}
        record = records.get(name, Record(name, ()))
        if record.announced or any(child == part[0] for child, _, _ in record.parts):
            raise Broken(f"{part[0]} announces {name} to {rank}, which has all of it")
        records[name] = record._replace(parts=tuple(sorted((*record.parts, part))))
        return self._announce(self._with_records(state, rank, records), rank)

    def _is_full(self, member: Member, rank: int, record: Record) -> bool:
        """Each of the share has submitted the name, or has joined."""
        have = {child for child, _, _ in record.parts}
        joined = set(member.joined_below)
        if "count_joined" in self.faults:
            return merged(record.parts)[0] >= len(self.share[rank]) - len(joined)
        lacking = [
            child
            for child in (rank, *self.children[rank])
            if child not in have
            and not ({rank} if child == rank else self.share[child]) <= joined
        ]
        if "all_but_one" in self.faults and rank == 0:
            return len(lacking) <= 1
        return not lacking

    def _announce(self, state: State, rank: int) -> State:
        """Tell the parent of what is full and has not been announced."""
        if rank == 0:
            return state
        for record in state.members[rank].records:
            member = state.members[rank]
            if record.announced or not self._is_full(member, rank, record):
                continue
            count, signatures = merged(record.parts)
            message = (REQUEST, record.name, count, signatures)
            slots = table_after(state.log[: member.applied], self.capacity).slots
            for slot, known in enumerate(slots):
                if known and not known[3] and ((known[1],), known[0]) == (
                    tuple(s for s, _ in signatures), record.name
                ):
                    message = (READY, slot, count, signatures[0][1])
            state = self._send(state, rank, message)
            records = {r.name: r for r in member.records}
            records[record.name] = record._replace(announced=True)
            state = self._with_records(state, rank, records)
        return state

    def _note_join(self, state: State, rank: int, joiner: int) -> State:
        member = state.members[rank]
        below = (*member.joined_below, joiner)
        state = self._with(state, rank, member._replace(joined_below=below))
        if rank == 0:
            return state
        if "join_first" in self.faults:
            return self._announce(self._send(state, rank, (JOIN, joiner)), rank)
        return self._send(self._announce(state, rank), rank, (JOIN, joiner))

    def _seen(self, state: State, rank: int) -> int:
        """The retirements that all of a share have applied, as its head knows."""
        member = state.members[rank]
        seen = [table_after(state.log[: member.applied], self.capacity).retirements]
        for child, told in zip(self.children[rank], member.seen_below):
            seen.append(self._seen(state, child) if child in self.in_host else told)
        return min(seen)

    def _send(self, state: State, rank: int, message: tuple) -> State:
        if rank in self.in_host and message[0] == READY and self._is_up(state, self.parent[rank]):
            return self._take(state, rank, message)
        message = (*message, self._seen(state, rank))
        return state._replace(up=put(state.up, rank, (*state.up[rank], message)))

    def _receive(self, state: State, child: int) -> tuple[str, State]:
        rank = self.parent[child]
        message, *rest = state.up[child]
        state = state._replace(up=put(state.up, child, tuple(rest)))
        member = state.members[rank]
        below = put(member.seen_below, self.children[rank].index(child), message[-1])
        state = self._with(state, rank, member._replace(seen_below=below))
        return f"{rank} hears {message} from {child}", self._take(state, child, message[:-1])

    def _take(self, state: State, child: int, message: tuple) -> State:
        rank = self.parent[child]
        kind, *fields = message
        if kind == JOIN:
            return self._note_join(state, rank, fields[0])
        if kind == REQUEST:
            name, count, signatures = fields
        else:
            slot, count, lowest = fields
            applied = state.log[: state.members[rank].applied]
            known = table_after(applied, self.capacity).slots[slot]
            if known is None:
                raise Broken(f"{rank} is told of slot {slot}, which was never given")
            name, signatures = known[0], ((known[1], lowest),)
        return self._note(state, rank, name, (child, count, signatures))

    # ---- The log, down the tree --------------------------------------------

    def _visible(self, state: State, rank: int) -> int:
        """How much of the log has reached a member."""
        if "log_to_all" in self.faults:
            return len(state.log)
        return state.members[self.parent[rank]].applied

    def _apply(self, state: State, rank: int) -> State:
        member = state.members[rank]
        entry = state.log[member.applied]
        index = member.applied
        member = member._replace(applied=index + 1)
        if entry[0] == JOINED:
            if member.records:
                raise Broken(f"{rank} applies JOINED with {member.records} in flight")
            unnamed = member.unnamed if "unnamed_go_on" in self.faults else 0
            member = member._replace(joined=False, joined_below=(), unnamed=unnamed)
            return self._with(state, rank, member)
        what = entry[1] if entry[0] == RUN else (entry[1],)
        for op in what:
            name = op.name if entry[0] == RUN else op
            given = [known for known in member.pending if self._key(*known[:2]) == name]
            if not given and not member.joined:
                raise Broken(f"{rank} applies {entry}, but has not submitted {name}")
            if entry[0] == RUN and given and given[0][1] != op.signature:
                raise Broken(f"{rank} runs {op} with {given[0]}")
            records = tuple(r for r in member.records if r.name != name)
            member = member._replace(records=records)
            if entry[0] == ERROR or not self.deaths:
                # Where no member dies, what has started is as good as complete.
                member = self._delivered(member, given)
        if entry[0] == RUN and self.deaths:
            member = member._replace(running=(*member.running, index))
        return self._with(state, rank, member)

    def _complete(self, state: State, rank: int) -> State:
        member = state.members[rank]
        names = {op.name for op in state.log[member.running[0]][1]}
        given = [known for known in member.pending if known[0] in names]
        member = self._delivered(member, given)
        return self._with(state, rank, member._replace(running=member.running[1:]))

    @staticmethod
    def _delivered(member: Member, given: list) -> Member:
        return member._replace(pending=tuple(p for p in member.pending if p not in given))

    # ---- The coordinator ---------------------------------------------------

    def _decisions(self, state: State) -> Iterator[tuple[str, State]]:
        """Each full record alone, and all of them as one batch."""
        root = state.members[0]
        full = [record for record in root.records if self._is_full(root, 0, record)]
        if "error_at_once" in self.faults:
            full += [r for r in root.records if r not in full and len(merged(r.parts)[1]) > 1]
        good = []
        for record in full:
            count, signatures = merged(record.parts)
            zeros = count < self.size
            if "joined_so_far" in self.faults:
                zeros = bool(root.joined_below)
            if len(signatures) > 1 or (zeros and signatures[0][0].startswith(NO_ZEROS)):
                yield self._append(state, (ERROR, record.name, signatures))
            else:
                good.append(record)
                yield self._append(state, self._run_of(state, [record]))
        if len(good) > 1:
            yield self._append(state, self._run_of(state, good))
        all_joined = len(root.joined_below) == self.size
        if all_joined and (not root.records or "joined_at_once" in self.faults):
            yield self._append(state, (JOINED, root.joined_below[-1]))

    def _run_of(self, state: State, records: list[Record]) -> tuple:
        """RUN, with the slots that it gives and retires."""
        table = table_after(state.log, self.capacity)
        acknowledged = self._seen(state, 0)
        if "no_acknowledgement" in self.faults:
            acknowledged = table.retirements
        free = [s for s, known in enumerate(table.slots)
                if known is None or 0 < known[3] <= acknowledged]
        live = {known[0]: s for s, known in enumerate(table.slots) if known and not known[3]}
        ops, retired, short = [], [], 0
        for record in records:
            count, ((signature, _),) = merged(record.parts)
            slot, is_new = live.pop(record.name, None), False
            if slot is not None and table.slots[slot][1] != signature:
                retired.append(slot)
                slot = None
            if slot is None and not record.name.startswith("#"):
                is_new = bool(free)
                slot = free.pop(0) if free else None
                short += not is_new
            ops.append(Op(record.name, signature, slot, is_new, count))
        oldest = sorted(live.values(), key=lambda s: table.slots[s][2])
        return (RUN, tuple(ops), (*retired, *oldest[: max(0, short - len(retired))]))

    def _append(self, state: State, entry: tuple) -> tuple[str, State]:
        self._check(state, entry)
        state = state._replace(log=(*state.log, entry))
        return f"0 appends {entry}", self._apply(state, 0)

    # ---- What must hold of a new entry, seen from outside --------------------

    def _check(self, state: State, entry: tuple) -> None:
        for rank, member in enumerate(state.members):
            to_come = state.log[member.applied :]
            joined = member.joined and not any(e[0] == JOINED for e in to_come)
            if entry[0] == JOINED and not joined:
                raise Broken(f"{entry}, but {rank} has not joined")
        if entry[0] == RUN:
            for op in entry[1]:
                having = [m for m in range(self.size) if self._has(state, m, op.name)]
                if len(having) != op.count:
                    raise Broken(f"{op} has a wrong count: {having} have submitted it")
                if op.count < self.size and op.signature.startswith(NO_ZEROS):
                    raise Broken(f"{op} runs, though not all have submitted it")
        if entry[0] == ERROR:
            for signature, rank in entry[2]:
                if self._has(state, rank, entry[1]) != signature:
                    raise Broken(f"{entry} is wrong about {rank}")

    def _has(self, state: State, rank: int, name: str) -> str | None:
        """The signature that the member has submitted to the coming entry."""
        member = state.members[rank]
        for entry in (*state.log[member.applied :], *(state.log[i] for i in member.running)):
            done = {op.name for op in entry[1]} if entry[0] == RUN else {entry[1]}
            if name in done:
                return None
        for known, signature, _ in member.pending:
            if self._key(known, signature) == name:
                return signature
        return None

    # ---- Death --------------------------------------------------------------

    def _neighbours(self, rank: int) -> list[int]:
        above = [] if self.parent[rank] is None else [self.parent[rank]]
        return [*above, *self.children[rank]]

    def _hears_of_death(self, state: State, rank: int) -> bool:
        near = self._neighbours(rank)
        told = any(state.members[other].failed for other in near)
        if "not_passed_on" in self.faults:
            told = False
        return state.dead in near or told

    def _is_up(self, state: State, rank: int) -> bool:
        return rank != state.dead and not state.members[rank].failed

    # ---- Values -------------------------------------------------------------

    @staticmethod
    def _with(state: State, rank: int, member: Member) -> State:
        return state._replace(members=put(state.members, rank, member))

    def _with_records(self, state: State, rank: int, records: dict) -> State:
        records = tuple(records[name] for name in sorted(records))
        return self._with(state, rank, state.members[rank]._replace(records=records))
