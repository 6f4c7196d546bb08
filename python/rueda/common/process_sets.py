# SPDX-License-Identifier: Apache-2.0
"""Sets of ranks that do collectives among themselves."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from rueda import _core

__all__ = ["ProcessSet", "add_process_set", "global_process_set", "remove_process_set"]


def is_communicator(value: object) -> bool:
    """Is this a communicator of mpi4py's? It need not be installed."""
    return hasattr(value, "Get_rank") and hasattr(value, "Get_size")


class ProcessSet:
    """Some ranks of the job, which know each other by their ranks in the job.

    It can be used when it is registered: by ``init(process_sets=...)`` or by
    :func:`add_process_set`.
    """

    process_set_id: int | None = None
    ranks: list[int] | None = None
    mpi_comm: Any = None

    def __init__(self, ranks_or_comm: Iterable[int] | Any) -> None:
        if is_communicator(ranks_or_comm):
            self.mpi_comm = ranks_or_comm
            return
        try:
            self.ranks = sorted(operator.index(rank) for rank in ranks_or_comm)
        except TypeError:
            raise ValueError(
                f"a process set is made of a list of ranks, not of {ranks_or_comm!r}"
            ) from None

    def size(self) -> int | None:
        """The number of its ranks, or None before it is registered."""
        if self.process_set_id is None or self.ranks is None:
            return None
        _core.rank()  # the set of all ranks has a number before init()
        return len(self.ranks)

    def rank(self) -> int | None:
        """My place in it, or None before it is registered.

        :class:`ValueError` if this process is not a member.
        """
        if self.process_set_id is None or self.ranks is None:
            return None
        me = _core.rank()
        if me not in self.ranks:
            raise ValueError(f"rank {me} is not a member of {self}")
        return self.ranks.index(me)

    def included(self) -> bool | None:
        """Is this process a member? None if that is not known yet."""
        return None if self.ranks is None else _core.rank() in self.ranks

    def __str__(self) -> str:
        return (
            f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, "
            f"mpi_comm={self.mpi_comm})"
        )

    __repr__ = __str__

    def __deepcopy__(self, memo: dict[int, Any]) -> ProcessSet:
        """Itself, since a copy would not learn when the set ends."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Ids belong to a job. A pickle is the set of these ranks where it is loaded."""
        return _set_of, (self.ranks or [], self.process_set_id == 0)


def _set_of(ranks: list[int], is_global: bool) -> ProcessSet:
    """The one that is registered, if there is one."""
    if is_global:
        return global_process_set
    number = find(ranks)
    return ProcessSet(ranks) if number is None else _registered[number]


#: All ranks of the job.
global_process_set = ProcessSet([])
global_process_set.process_set_id = 0

# Those that are registered, by their ids. Changes are made by all ranks in the
# same order, so this is the same everywhere.
_registered: dict[int, ProcessSet] = {}
_is_dynamic = False


def ids_and_ranks() -> dict[int, list[int]]:
    """All sets that there are."""
    return {number: list(one.ranks or []) for number, one in sorted(_registered.items())}


def find(ranks: list[int]) -> int | None:
    """The id of the set of just these ranks, if there is one."""
    for number, one in _registered.items():
        if one.ranks == ranks:
            return number
    return None


def check_distinct(process_sets: list[ProcessSet]) -> None:
    """:class:`ValueError` if one of them is there twice, or means all ranks."""
    seen = [global_process_set.ranks]
    for one in process_sets:
        if one.ranks in seen:
            raise ValueError(f"{one} is there twice, or is the set of all ranks")
        seen.append(one.ranks)


def begin(process_sets: list[ProcessSet], is_dynamic: bool) -> None:
    """The context is there: take note of its sets, and make these."""
    global _is_dynamic
    _is_dynamic = is_dynamic
    _note_existing()
    check_distinct(process_sets)
    for one in process_sets:
        known = find(one.ranks or [])
        if known is None:
            register(one)
        else:
            one.process_set_id = known
            _registered[known] = one


def _note_existing() -> None:
    """Sets that settings ask for have the ids 1, 2, ..."""
    number = 0
    ranks = _core.set_ranks(number)
    while ranks is not None:
        if number not in _registered:
            _registered[number] = ProcessSet(ranks) if number > 0 else global_process_set
            _registered[number].process_set_id = number
        _registered[number].ranks = ranks
        number += 1
        ranks = _core.set_ranks(number)


def end() -> None:
    """The context is gone, and with it all sets but the name of the global one."""
    for one in _registered.values():
        if one is not global_process_set:
            one.process_set_id = None
    _registered.clear()


def register(one: ProcessSet) -> None:
    if one.ranks is None:
        raise NotImplementedError("process sets are made of ranks, not of communicators")
    one.process_set_id = _core.set_create(tuple(one.ranks))
    _registered[one.process_set_id] = one


def _check_dynamic() -> None:
    _core.rank()
    if not _is_dynamic:
        raise ValueError(
            "process sets are fixed in this job; to change them set "
            'HOROVOD_DYNAMIC_PROCESS_SETS=1 or call init(process_sets="dynamic")'
        )


def add_process_set(process_set: ProcessSet | Iterable[int]) -> ProcessSet:
    """Make a set while the job runs; all ranks of the job call this, members or not."""
    _check_dynamic()
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.ranks is not None and find(process_set.ranks) is not None:
        raise ValueError(f"there is a process set of ranks {process_set.ranks} already")
    register(process_set)
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Remove a set; all ranks of the job call this. False if it was not there."""
    number = process_set.process_set_id
    if number is None or number == 0 or number not in _registered:
        return False
    _check_dynamic()
    _core.set_destroy(number)
    del _registered[number]
    process_set.process_set_id = None
    return True
