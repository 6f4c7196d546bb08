# SPDX-License-Identifier: Apache-2.0
"""A board on which two jobs that hold the same key leave words for each other.

A word stays under its name until the board is closed. The board sends each connection a
number that is used once. The client answers with one line: a proof that it knows the key,
and the request as JSON. The board's answer has a proof too. Nothing is decoded before its
proof has been checked.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import secrets
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Board", "BoardClient", "own_addresses"]

#: By the name of an interface: host and port.
Addresses = Mapping[str, Sequence[tuple[str, int]]]

_MOST_BYTES = 1 << 16  # of a line
_LINE_S = 10.0  # until the other side's line is there
_SLICE_S = 20.0  # of a wait: a client asks again
_GET_ADDRESS = 0x8915  # SIOCGIFADDR


def own_addresses() -> dict[str, str]:
    """This host's IPv4 addresses, by the names of the interfaces; loopback is the last."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), _GET_ADDRESS, request)
            except OSError:
                continue  # an interface without one
            found[name] = socket.inet_ntoa(answer[20:24])
    return dict(sorted(found.items(), key=lambda item: item[1].startswith("127.")))


def _proof(key: bytes, number: str, side: str, text: str) -> str:
    return hmac.new(key, f"{number} {side} {text}".encode(), hashlib.sha256).hexdigest()


def _sealed(key: bytes, number: str, side: str, value: Any) -> bytes:
    text = json.dumps(value)
    return f"{_proof(key, number, side, text)} {text}\n".encode()


def _opened(key: bytes, number: str, side: str, line: bytes) -> Any:
    """What the line says, or :class:`PermissionError` if its proof does not hold."""
    proof, _, text = line.decode("utf-8", "replace").rstrip("\n").partition(" ")
    if not hmac.compare_digest(proof.encode(), _proof(key, number, side, text).encode()):
        raise PermissionError("the other side does not know the key of the compute service")
    return json.loads(text)


# ---- The board --------------------------------------------------------------


class _Handler(socketserver.StreamRequestHandler):
    timeout = _LINE_S

    def handle(self) -> None:
        board: Board = self.server.board  # type: ignore[attr-defined]
        number = secrets.token_hex(16)
        try:
            self.wfile.write(f"{number}\n".encode())
            line = self.rfile.readline(_MOST_BYTES)
            request = _opened(board.key, number, "asks", line)
        except (OSError, PermissionError):
            return  # one that is not of ours, or gone
        try:
            answer = {"value": board.answer(request)}
        except (KeyError, TypeError, ValueError) as error:
            answer = {"error": str(error)}
        try:
            self.wfile.write(_sealed(board.key, number, "answers", answer))
        except OSError:
            return


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    block_on_close = True  # until all who have asked are answered


class Board:
    """Serves in threads of its own, on all addresses of this host, until it is closed."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._words: dict[str, str] = {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._server = _Server(("", 0), _Handler)
        self._server.board = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        self._thread.start()

    def addresses(self) -> dict[str, list[tuple[str, int]]]:
        port = self._server.server_address[1]
        return {name: [(address, port)] for name, address in own_addresses().items()}

    def answer(self, request: Mapping[str, Any]) -> Any:
        """Do what is asked; the errors of a wrong request go back to the client."""
        if request["do"] == "put":
            return self._put(str(request["name"]), str(request["word"]))
        if request["do"] == "wait":
            limit_s = min(float(request["limit_s"]), _SLICE_S)
            return self._wait(str(request["prefix"]), int(request["count"]), limit_s)
        raise ValueError(f"a board does not know how to {request['do']}")

    def _put(self, name: str, word: str) -> None:
        with self._changed:
            known = self._words.setdefault(name, word)
            if known != word:
                raise ValueError(f"{name} is {known} already, and cannot be {word}")
            self._changed.notify_all()

    def _wait(self, prefix: str, count: int, limit_s: float) -> dict[str, str] | None:
        """The words under names that begin so, once there are that many; None if late."""

        def found() -> dict[str, str]:
            return {name: word for name, word in self._words.items() if name.startswith(prefix)}

        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(found()) >= count, limit_s)
            words = found()
            return words if len(words) >= count else None

    def close(self) -> None:
        """Answer those who wait, and stop."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


# ---- A client ---------------------------------------------------------------


class BoardClient:
    """Reads and leaves words, over the first address that answers."""

    def __init__(self, addresses: Addresses, key: bytes) -> None:
        self._places = [(host, port) for some in addresses.values() for host, port in some]
        self._key = key

    def put(self, name: str, word: str = "") -> None:
        self._ask({"do": "put", "name": name, "word": word})

    def wait(self, prefix: str, count: int, limit_s: float | None, what: str) -> dict[str, str]:
        """Wait for so many words under names that begin so.

        :class:`TimeoutError` after ``limit_s``, if that is given; :class:`ConnectionError`
        when the board is gone.
        """
        end = None if limit_s is None else time.monotonic() + limit_s
        while True:
            left = _SLICE_S if end is None else end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"waited {limit_s} s for {what}; is that running?")
            found = self._ask({"do": "wait", "prefix": prefix, "count": count, "limit_s": left})
            if found is not None:
                return dict(found)

    def _ask(self, request: Mapping[str, Any]) -> Any:
        failure: Exception = ConnectionError("the compute service has no address")
        for place in self._places:
            try:
                answer = self._ask_at(place, request)
            except (OSError, PermissionError) as error:
                failure = error
                continue
            if "error" in answer:
                raise ValueError(answer["error"])
            return answer["value"]
        raise ConnectionError(
            f"the compute service cannot be reached at {self._places}: {failure}"
        ) from failure

    def _ask_at(self, place: tuple[str, int], request: Mapping[str, Any]) -> Any:
        with socket.create_connection(place, timeout=_LINE_S) as connection:
            with connection.makefile("rb") as lines:
                number = lines.readline(_MOST_BYTES).decode("ascii", "replace").strip()
                connection.sendall(_sealed(self._key, number, "asks", request))
                connection.settimeout(_SLICE_S + _LINE_S)
                line = lines.readline(_MOST_BYTES)
        if not line:
            raise ConnectionError("the compute service ended the connection")
        return _opened(self._key, number, "answers", line)
