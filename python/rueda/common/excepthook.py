# SPDX-License-Identifier: Apache-2.0
"""The first uncaught exception is reported to all ranks.

Otherwise they would only learn that this rank is gone, and its traceback would be
somewhere in the output of another process. A rank that ends because another one did
lets that one end first: the exit code of a job is that of its first process to end.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from contextlib import suppress
from types import TracebackType
from typing import Any, Callable

from rueda import _core

from .exceptions import HorovodInternalError

# Of a failure so much is passed on; more would be cut at its end.
_MOST_BYTES = 500

# How long a rank may take to end that has told others so, or was found out.
_FIRST_TO_END_S = 3.0

_next: Callable[..., Any] | None = None
_process = 0  # that is the rank, and not a child of it


def install() -> None:
    """Once; the previous hook is still called, and first."""
    global _next, _process
    _process = os.getpid()
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
        is_first = _core.fail(describe(kind, error, trace))
    if issubclass(kind, HorovodInternalError) and not is_first and _process == os.getpid():
        with suppress(KeyboardInterrupt):
            time.sleep(_FIRST_TO_END_S)  # a launcher ends it before
