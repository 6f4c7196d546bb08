# SPDX-License-Identifier: Apache-2.0
"""How a function gets to the ranks, and how its results and exceptions get back.

Functions of ``__main__``, of notebooks and of other functions travel by value,
which takes cloudpickle; what can be imported is named and imported, by pickle.
"""

from __future__ import annotations

import importlib
import os
import pickle
import struct
import sys
import traceback
from typing import Any, Callable, NamedTuple

#: How the ranks learn where the driver is and what its key is: an :class:`Offer`, or
#: after ``IN_FILE`` the path of a file that holds one.
VARIABLE = "RUEDA_RUN"
IN_FILE = "file:"


class Offer(NamedTuple):
    """What the variable says."""

    key: bytes
    port: int
    addresses: tuple[str, ...]  #: of the driver, the likeliest first

    def text(self) -> str:
        return f"{self.key.hex()},{self.port},{','.join(self.addresses)}"

    @classmethod
    def parse(cls, text: str) -> Offer:
        """Read what the variable says; OSError where its file cannot be read."""
        if text.startswith(IN_FILE):
            with open(text[len(IN_FILE) :], encoding="ascii") as file:
                text = file.read()
        key, port, *addresses = text.split(",")
        return cls(bytes.fromhex(key), int(port), tuple(addresses))


# ---- There ------------------------------------------------------------------


def dumps(what: Any) -> bytes:
    """By cloudpickle, or where that is not installed by pickle alone."""
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        return pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    return cloudpickle.dumps(what, pickle.HIGHEST_PROTOCOL)


def pack_task(func: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> bytes:
    """What a rank is to call; raises TypeError with the remedy where it cannot travel."""
    try:
        # Without cloudpickle pickle would name it, and ranks have another __main__.
        if getattr(func, "__module__", None) == "__main__":
            importlib.import_module("cloudpickle")
        call = dumps((func, args, kwargs))
    except ImportError as error:
        raise TypeError(
            f"{_name(func)} is part of a script, and to send it to the ranks takes "
            "cloudpickle: pip install cloudpickle, or put the function into a module"
        ) from error
    except Exception as error:
        has = sys.modules.get("cloudpickle") is not None
        remedy = "" if has else " (pip install cloudpickle, which can send more than pickle)"
        raise TypeError(
            f"{_name(func)} and its arguments cannot be sent to the ranks: {error}{remedy}"
        ) from error
    paths = [os.path.abspath(path or os.getcwd()) for path in sys.path]
    head = pickle.dumps(paths)
    return struct.pack("!Q", len(head)) + head + call


def unpack_task(task: bytes | bytearray) -> tuple[Callable[..., Any], tuple, dict[str, Any]]:
    """What to call. Modules are looked for where the driver finds them, too."""
    length = struct.unpack_from("!Q", task)[0]
    for path in pickle.loads(task[8 : 8 + length]):
        if path not in sys.path:
            sys.path.append(path)
    return pickle.loads(memoryview(task)[8 + length :])


def _name(func: object) -> str:
    return getattr(func, "__qualname__", None) or repr(func)


# ---- And back ---------------------------------------------------------------


class Outcome(NamedTuple):
    """How a call ended on a rank: a value, or the words of an exception."""

    value: bytes | memoryview | None  #: pickled with the rank, where it returned
    kind: str = ""  #: the name of the exception
    text: str = ""  #: its traceback
    error: bytes | memoryview | None = None  #: itself, pickled, where that can be done

    def pack(self) -> bytes:
        kind, text = (part.encode("utf-8", "backslashreplace") for part in self[1:3])
        parts = [self.value, kind, text, self.error]
        # A part that is not there is told from one that is empty.
        lengths = [-1 if part is None else len(part) for part in parts]
        return struct.pack("!4q", *lengths) + b"".join(part or b"" for part in parts)

    @classmethod
    def unpack(cls, data: bytes | bytearray) -> Outcome:
        """ValueError where it is none; nothing is unpickled."""
        if len(data) < 32:
            raise ValueError("too short for an outcome")
        view, at, parts = memoryview(data), 32, []
        for length in struct.unpack_from("!4q", data):
            if length < -1 or length > len(data) - at:
                raise ValueError("an outcome of parts that are not there")
            parts.append(None if length < 0 else view[at : at + length])
            at += max(length, 0)
        value, kind, text, error = parts
        if (value is None) == (kind is None or text is None or not kind):
            raise ValueError("neither a value nor an exception")
        words = [bytes(part or b"").decode("utf-8", "replace") for part in (kind, text)]
        return cls(value, *words, error)


def outcome_of_value(rank: int, value: Any) -> Outcome:
    """Raises where the value cannot travel."""
    return Outcome(dumps((rank, value)))


def outcome_of_error(error: BaseException) -> Outcome:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    data: bytes | None = None
    try:
        data = dumps(error)
        # Exceptions whose constructor wants more than its args do not come back.
        pickle.loads(data)
    except Exception:
        data = None
    return Outcome(None, type(error).__name__, text, data)
