# SPDX-License-Identifier: Apache-2.0
"""The first exception that nobody catches is told to all ranks.

They would otherwise only learn that this rank is gone, and its own traceback is
somewhere in the output of another process.
"""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Any, Callable

from rueda import _core

# Of a failure so much is passed on; more would be cut at its end.
_MOST_BYTES = 500

_next: Callable[..., Any] | None = None


def install() -> None:
    """Once; whoever was called before is still called, and first."""
    global _next
    if _next is None:
        _next = sys.excepthook
        sys.excepthook = _tell


def describe(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> str:
    """The exception as Python prints it; if that is long, its end, which matters most."""
    text = "".join(traceback.format_exception(kind, error, trace)).rstrip().encode(errors="replace")
    if len(text) > _MOST_BYTES:
        text = b"..." + text[3 - _MOST_BYTES :]
    return text.decode(errors="ignore")


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    # It is shown before others hear of it, and so before what they say of it.
    try:
        (_next or sys.__excepthook__)(kind, error, trace)
    finally:
        _core.fail(describe(kind, error, trace))
