# SPDX-License-Identifier: Apache-2.0
"""Operations that are under way, each known to the user by a number.

What an operation reads and writes is kept here until it has ended, whatever the
user does with it meanwhile.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Callable

from rueda import _core

__all__ = ["add", "forget_all", "poll", "synchronize"]

# Handles of the library; the result, or else a function that waits for it; and
# whatever memory the operation uses. A plain tuple, because it is made for each.
_pending: dict[int, tuple[Sequence[int], Any, Callable[[], Any] | None, Any]] = {}
_numbers = itertools.count(1)


def forget_all() -> None:
    """The context is gone, and nothing runs any more."""
    global _numbers
    _pending.clear()
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


def poll(handle: int) -> bool:
    """Has the operation ended, so that :func:`synchronize` will not block?"""
    pending = _pending.get(handle)
    if pending is None:
        raise ValueError(f"{handle} is not the handle of an operation that is under way")
    return all(map(_core.poll, pending[0]))


def synchronize(handle: int) -> Any:
    """Wait until the operation ends, and return its result.

    A result can be fetched once; a handle that was used up, or never was one,
    gives None. Failures of the job are a ``HorovodInternalError``.
    """
    pending = _pending.get(handle)
    if pending is None:
        return None
    cores, output, finish, _ = pending
    try:
        if finish is not None:
            output = finish()
        else:
            for core in cores:
                _core.wait(core)
    except BaseException:
        # After a Ctrl-C it runs on, and needs its memory.
        if all([_is_over(core) for core in cores]):
            _pending.pop(handle, None)
        raise
    _pending.pop(handle, None)
    return output


def _is_over(core: int) -> bool:
    """Has it ended? Then the library need not remember it."""
    try:
        if not _core.poll(core):
            return False
        _core.wait(core)
    except (RuntimeError, ValueError):
        pass  # it failed as well, or is gone, with its context perhaps
    return True
