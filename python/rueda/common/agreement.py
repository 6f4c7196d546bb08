# SPDX-License-Identifier: Apache-2.0
"""Do all ranks have the same parameters? Without any framework.

A model that is not broadcast starts differently on every rank, and every rank then
trains a model of its own: nothing fails, and the result is wrong. So an optimizer
compares a hash of its parameters over the ranks of its process set: in the first
step, or in every Nth as well (``RUEDA_CHECK``).

    agreement = Agreement(process_set)
    ...
    if agreement.is_due():
        words = agreement.compare({name: hash, ...}, "the line to add")

The comparison is an allreduce (maximum and minimum) of two numbers. Only if they
differ two more follow, which find the first parameter and the ranks. A rank that has
called join() does not change a maximum, so the others are compared without it.

All ranks begin again after an init() and after a join(), for then a rank may take its
first step while others have taken theirs. A rank that waits for others for longer than
``LIMIT_S`` gives up, and says so.
"""

from __future__ import annotations

import ctypes
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rueda import _core

from . import handles
from .operations import key_of, set_of
from .process_sets import ProcessSet

__all__ = ["LIMIT_S", "Agreement", "begin_again", "digest_of_parts", "follow", "words_for"]

#: How long a rank waits for the others, in seconds.
LIMIT_S = 30.0

_FIRST_PAUSE_S = 0.0001
_MOST_PAUSE_S = 0.005
_MOST_NAMED = 8  # ranks in a message

# Agreements, and what else begins again with them: it has a method forget().
_all: weakref.WeakSet[Any] = weakref.WeakSet()


class _LateError(Exception):
    """Other ranks did not come in time."""


def begin_again() -> None:
    """Have every optimizer compare in its next step; all ranks call this together."""
    for agreement in list(_all):
        agreement.forget()


def follow(other: Any) -> None:
    """Have ``forget()`` of this called, too, whenever all ranks begin again."""
    _all.add(other)


class Agreement:
    """When the ranks of a process set compare an optimizer's parameters, and how."""

    def __init__(self, process_set: ProcessSet) -> None:
        self._set = process_set
        self._steps_left: int | None = 0  # until the next comparison; None: there is none
        _all.add(self)
        handles.holders.add(self)

    def forget(self) -> None:
        """Begin again, as all other ranks do."""
        self._steps_left = 0

    def skip(self) -> None:
        """Do not compare in the first step: the parameters are made equal after it."""
        every = _core.check_every()
        self._steps_left = every - 1 if every > 0 else None

    def is_due(self) -> bool:
        """Is this a step in which the ranks compare? Asked once in each step."""
        if self._steps_left is None:
            return False
        if self._steps_left > 0:
            self._steps_left -= 1
            return False
        self.skip()
        return _core.check_every() != 0 and (self._set.size() or 1) > 1

    def compare(self, digests: Mapping[str, int], remedy: str) -> str | None:
        """Return a warning, on the lowest rank that takes part, if parameters differ.

        ``digests`` has a signed number of 64 bits for the name of each parameter. Where
        ranks have parameters of other names there is no verdict.
        """
        names = sorted(digests)
        if not names:
            return None
        try:
            found = self._find(names, [digests[name] for name in names])
        except _LateError:
            self._steps_left = None
            return (
                "the parameters of the ranks were not compared: some ranks did not come to "
                f"this step of the optimizer within {LIMIT_S:.0f} s. RUEDA_CHECK=off ends the "
                "comparison"
            )
        if found is None:
            return None
        self._steps_left = None  # on every rank: once is enough
        index, count, digest_of = found
        if min(digest_of) != _core.rank():
            return None
        return words_for(names[index], count, len(names), digest_of, remedy)

    # ---- Between the ranks --------------------------------------------------

    def _find(self, names: list[str], digests: list[int]) -> tuple[int, int, dict[int, int]] | None:
        """The first parameter that differs, how many do, and its hash by rank."""
        label = f"parameters.{names[0]}"
        whole = [_digest_of_text("\0".join(names)), _digest_of_numbers(digests)]
        are_names_same, are_same = self._are_same(whole, label)
        if are_same or not are_names_same:
            return None
        each = self._are_same(digests, f"{label}.each")
        if all(each):
            return None
        index = each.index(False)
        return index, each.count(False), self._gather(digests[index], f"{label}.ranks")

    def _are_same(self, numbers: Sequence[int], label: str) -> list[bool]:
        """For each number, whether all ranks that take part have the same."""
        count = len(numbers)
        # The largest complement is that of the smallest number.
        room = (ctypes.c_int64 * (2 * count))(*numbers, *(~number for number in numbers))
        self._allreduce(room, _core.REDUCTION_MAX, label)
        return [room[i] == ~room[count + i] for i in range(count)]

    def _gather(self, number: int, label: str) -> dict[int, int]:
        """The numbers of those ranks that take part: one that has joined adds zeros."""
        members = self._set.ranks or [0]
        room = (ctypes.c_int64 * (2 * len(members)))()
        mine = members.index(_core.rank())
        room[2 * mine], room[2 * mine + 1] = 1, number
        self._allreduce(room, _core.REDUCTION_SUM, label)
        return {rank: room[2 * i + 1] for i, rank in enumerate(members) if room[2 * i] == 1}

    def _allreduce(self, room: ctypes.Array[ctypes.c_int64], reduction: int, label: str) -> None:
        place = ctypes.addressof(room)
        core = _core.submit(
            _core.KIND_ALLREDUCE, key_of("check", label), set_of(self._set), _core.DTYPE_INT64,
            place, place, (len(room),), reduction,
        )  # fmt: skip
        handle = handles.add((core,), None, room)
        limit = time.monotonic() + LIMIT_S
        pause = _FIRST_PAUSE_S
        while not handles.poll(handle):
            if time.monotonic() >= limit:
                handles.abandon(handle)
                raise _LateError
            time.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE_S)
        handles.synchronize(handle)


# ---- Numbers and words ------------------------------------------------------


def digest_of_parts(kind: str, parts: Iterable[tuple[int, int]]) -> int:
    """Hash what a tensor is and the bytes that it is made of, as (address, length)."""
    digest = _digest_of_text(kind)
    for address, length in parts:
        digest = _core.digest(address, length, digest)
    return digest


def _digest_of_text(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    memory = ctypes.create_string_buffer(data, len(data) + 1)
    return _core.digest(ctypes.addressof(memory), len(data), 0)


def _digest_of_numbers(numbers: Sequence[int]) -> int:
    memory = (ctypes.c_int64 * len(numbers))(*numbers)
    return _core.digest(ctypes.addressof(memory), ctypes.sizeof(memory), 0)


def words_for(name: str, count: int, total: int, digest_of: Mapping[int, int], remedy: str) -> str:
    """Say which parameter differs, on which ranks, and what to do."""
    first = min(digest_of)
    others = [rank for rank in sorted(digest_of) if digest_of[rank] != digest_of[first]]
    named = ", ".join(map(str, others[:_MOST_NAMED]))
    if len(others) > _MOST_NAMED:
        named += f" and {len(others) - _MOST_NAMED} others"
    ranks = f"rank{'s' if len(others) > 1 else ''} {named}"
    return (
        f'the parameter "{name}" is not the same on all ranks: it differs on {ranks} from that '
        f"on rank {first} ({count} of {total} parameters differ). Each rank trains a model of "
        f"its own then. Before the first step add: {remedy}"
    )
