# SPDX-License-Identifier: Apache-2.0
"""Operations in flight, each known to the user by a number.

No framework is needed: every binding uses this table.

The table keeps what an operation reads and writes until it has ended, whatever
the user does with it meanwhile.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any, Callable

from rueda import _core

__all__ = ["abandon", "add", "forget_all", "holders", "leave_behind", "poll", "synchronize"]

# Handles of the library; the result, or else a function that waits for it; and
# whatever memory the operation uses. A plain tuple, because it is made for each.
_Pending = tuple[Sequence[int], Any, "Callable[[], Any] | None", Any]
_pending: dict[int, _Pending] = {}

# Operations that no caller waits for, and their memory.
_left_behind: list[tuple[int, Any]] = []
_numbers = itertools.count(1)

#: Other objects that hold handles of the library; each has a method forget().
holders: weakref.WeakSet[Any] = weakref.WeakSet()


def forget_all() -> None:
    """The context is gone, and nothing runs any more."""
    global _numbers
    _pending.clear()
    _left_behind.clear()
    for holder in list(holders):
        holder.forget()
    _numbers = itertools.count(1)


def add(
    cores: Sequence[int],
    output: Any,
    keep: Any = None,
    finish: Callable[[], Any] | None = None,
) -> int:
    """Return a number for it. ``finish`` waits for it and returns the result."""
    number = next(_numbers)
    _pending[number] = (cores, output, finish, keep)
    return number


def in_flight() -> list[int]:
    """The numbers of operations that no caller has waited for."""
    return list(_pending)


def output_of(handle: int) -> Any:
    """What such an operation writes to; KeyError for another number."""
    return _pending[handle][1]


def poll(handle: int) -> bool:
    """Has the operation ended, so that :func:`synchronize` will not block?

    Its name can be used again then. :class:`ValueError` for what is not the handle of an
    operation in flight.
    """
    pending = _pending.get(handle)
    if pending is None:
        raise ValueError(f"{handle} is not the handle of an operation in flight")
    cores = pending[0]
    if not all(map(_core.poll, cores)):
        return False
    if cores:
        _pending[handle] = ((), *_end(pending), None)
    return True


def synchronize(handle: int) -> Any:
    """Wait until the operation ends, and return its result.

    A result can be fetched once; a handle that was used up, or never was one,
    gives None. Failures of the job are a ``HorovodInternalError``.
    """
    pending = _pending.get(handle)
    if pending is None:
        return None
    try:
        output = _result_of(pending)
    except Exception:
        # Others of a group may still be in flight. After a Ctrl-C all are, and
        # the caller can wait for them once more.
        leave_behind(pending[0], pending)
        _pending.pop(handle, None)
        raise
    _pending.pop(handle, None)
    return output


def abandon(handle: int) -> None:
    """Give up its result."""
    pending = _pending.pop(handle, None)
    if pending is not None:
        leave_behind(pending[0], pending)


def leave_behind(cores: Sequence[int], memory: Any) -> None:
    """Let these end by themselves; they need their memory until then."""
    for core in cores:
        _core.forget(core)
    more = [(core, memory) for core in cores]
    _left_behind[:] = [one for one in _left_behind + more if not _has_ended(one[0])]


def _result_of(pending: _Pending) -> Any:
    cores, output, finish, _ = pending
    if finish is not None:
        return finish()
    for core in cores:
        _core.wait(core)
    return output


def _end(pending: _Pending) -> tuple[Any, Callable[[], Any] | None]:
    """What is left of an operation that has ended: a result, or what raises its failure."""
    try:
        return _result_of(pending), None
    except Exception as error:
        failure = error

    def fail() -> None:
        raise failure

    leave_behind(pending[0], pending)
    return None, fail


def _has_ended(core: int) -> bool:
    try:
        return _core.poll(core)
    except RuntimeError:
        return True  # with its context
