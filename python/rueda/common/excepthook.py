# SPDX-License-Identifier: Apache-2.0
"""The first uncaught exception is reported to all ranks.

Otherwise they would only learn that this rank is gone, and its traceback would be
somewhere in the output of another process. A rank that ends because another one did
lets that one end first: the exit code of a job is that of its first process to end.
"""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Callable

from rueda import _core

from .exceptions import HorovodInternalError

# Of a failure so much is passed on; more would be cut at its end.
_MOST_BYTES = 499

# How long a rank may take to end that has told others so, or was found out.
_FIRST_TO_END_S = 3.0

# Frames of this package say nothing to a user.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

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
    """The exception as Python prints it, from the user's first frame on.

    If that is long, its first line and its end, in whole lines; the end matters most.
    """
    lines = "".join(traceback.format_exception(kind, error, from_user(trace))).rstrip().split("\n")
    if _bytes_of(lines) > _MOST_BYTES:
        rest = lines[1:]
        head = [lines[0], "  ..."] if rest else []
        while len(rest) > 1 and _bytes_of(head + rest) > _MOST_BYTES:
            del rest[0]
        lines = head + (rest or lines)
    text = "\n".join(lines).encode(errors="replace")
    if len(text) > _MOST_BYTES:
        text = b"..." + text[3 - _MOST_BYTES :]
    # What the library adds begins a line of its own.
    return text.decode(errors="ignore") + "\n"


def _bytes_of(lines: list[str]) -> int:
    return len("\n".join(lines).encode(errors="replace"))


def from_user(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of the interpreter and of this package before the
    user's first; the whole of it if there is none."""
    for at in _chain(trace):
        if not at.tb_frame.f_code.co_filename.startswith((_PACKAGE, "<frozen ")):
            return at
    return trace


# What the failure of another rank is made of: its head, and how it goes on behind
# that rank's traceback.
_FAILED = re.compile(r"(rank \d+ [^\n]*? failed): (Traceback .*)", re.DOTALL)


def shorten(words: str) -> str:
    """Another rank's failure without its traceback, which that rank has printed itself."""
    found = _FAILED.fullmatch(words)
    if found is None:
        return words
    lines = found[2].rstrip().splitlines()
    ends = [at for at, line in enumerate(lines) if line and not line[0].isspace()]
    if len(ends) < 2:
        return words
    return "\n".join([f"{found[1]}: {lines[ends[1]]}", *lines[ends[1] + 1 :]])


def of_user(trace: TracebackType | None) -> TracebackType | None:
    """The traceback up to the call of this package; the whole of it if it began here."""
    frames = []
    for at in _chain(trace):
        if at.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            break
        frames.append(at)
    made: TracebackType | None = None
    for at in reversed(frames):
        made = TracebackType(made, at.tb_frame, at.tb_lasti, at.tb_lineno)
    return made or trace


def _chain(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """As usual; of another rank's failure only what this rank adds to the story."""
    if issubclass(kind, HorovodInternalError) and len(error.args) == 1:
        error.args = (shorten(str(error)),)
        trace = of_user(trace)
        error.__traceback__ = trace
    (_next or sys.__excepthook__)(kind, error, trace)


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    # It is shown before others hear of it, and so before what they say of it.
    words = describe(kind, error, trace)
    try:
        _show(kind, error, trace)
    finally:
        is_first = _core.fail(words)
    if issubclass(kind, HorovodInternalError) and not is_first and _process == os.getpid():
        with suppress(KeyboardInterrupt):
            time.sleep(_FIRST_TO_END_S)  # a launcher ends it before
