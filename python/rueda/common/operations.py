# SPDX-License-Identifier: Apache-2.0
"""What every binding needs to submit an operation, without any framework.

A binding checks its tensors, finds their memory and calls ``_core.submit``; the
process set's id, the reduction's number, the name that ranks match by, splits
and shares are the same for all frameworks and are here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rueda import _core

from .basics import Adasum, Average, Max, Min, Product, Sum
from .process_sets import ProcessSet

__all__ = [
    "REDUCTIONS",
    "key_of",
    "keys_of",
    "reduction_of",
    "rows_of_share",
    "set_of",
    "splits_of",
]

#: The library's number of each reduction.
REDUCTIONS = {
    Average: _core.REDUCTION_AVERAGE,
    Sum: _core.REDUCTION_SUM,
    Min: _core.REDUCTION_MIN,
    Max: _core.REDUCTION_MAX,
    Product: _core.REDUCTION_PRODUCT,
}


def set_of(process_set: ProcessSet) -> int:
    """Return the set's id, or raise :class:`ValueError`."""
    number = process_set.process_set_id
    if number is None:
        raise ValueError(
            f"{process_set} is not registered; pass it to init() or to add_process_set()"
        )
    return number


def reduction_of(op: int, process_set: ProcessSet) -> int:
    """Return the library's number of the reduction."""
    reduction = REDUCTIONS.get(op)
    if reduction is not None:
        return reduction
    if op != Adasum:
        raise ValueError(f"op is {op!r}; it can be Average, Sum, Adasum, Min, Max or Product")
    if process_set.process_set_id != 0:
        raise NotImplementedError("Adasum is done only by all ranks, not by a process set")
    size = _core.size()
    if size & (size - 1):
        raise NotImplementedError(
            f"Adasum takes a number of ranks that is a power of two, not {size}"
        )
    return _core.REDUCTION_ADASUM


def key_of(kind: str, name: str | None) -> str | None:
    """Return what ranks match the operation by; unnamed operations match by their order."""
    return None if name is None else f"{kind}.{name}"


def keys_of(kind: str, name: str | None, count: int) -> list[str | None]:
    """Return the same for the members of a group."""
    if name is None:
        return [None] * count
    return [f"{kind}.{name}_{i}of{count}" for i in range(1, count + 1)]


def splits_of(splits: Iterable[Any]) -> tuple[int, ...]:
    """Check the splits of an alltoall: one number of rows for each member."""
    try:
        numbers = tuple(int(number) for number in splits)
    except (TypeError, ValueError):
        raise ValueError(f"splits is a list of integers, not {splits!r}") from None
    if any(number < 0 for number in numbers):
        raise ValueError(f"splits has a negative number: {list(numbers)}")
    return numbers


def rows_of_share(rows: int, process_set: ProcessSet) -> int:
    """Return how many rows of a reducescatter are mine: the lowest members have one more."""
    members = process_set.ranks or [0]
    share, more = divmod(rows, len(members))
    return share + (members.index(_core.rank()) < more)
