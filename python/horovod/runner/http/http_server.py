# SPDX-License-Identifier: Apache-2.0
"""Servers that launchers written for Horovod start.

:class:`KVStoreServer` keeps values by HTTP, for processes that have its key
(:mod:`horovod.runner.http._signing`). Ranks of Rueda do not meet at such a
server but at a store that rank 0 keeps, behind a key. So
:class:`RendezvousServer` finds a free port for that store and makes a key; ranks
that get ``HOROVOD_GLOO_RENDEZVOUS_ADDR`` and ``_PORT`` as under Horovod, and this
process's environment, meet there. The address has to be one of rank 0's host.
"""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import _signing

#: Seconds for one request.
SINGLE_REQUEST_TIMEOUT = 3

BAD_REQUEST = 400
TIMEOUT = 408
OK = 200
_FORBIDDEN = 403
_NOT_FOUND = 404
_TOO_LARGE = 413
_MOST_BYTES = 1 << 30


class KVStoreHandler(BaseHTTPRequestHandler):
    """``PUT`` and ``GET`` of ``/scope/key``."""

    timeout = SINGLE_REQUEST_TIMEOUT
    server: KVStoreHTTPServer
    _nonce = ""  # of a request that is proven

    def do_GET(self) -> None:
        place = self._place()
        if place is None or not self._is_proven(changes=False):
            return
        with self.server.cache_lock:
            value = self.server.cache.get(place[0], {}).get(place[1])
        self.send_status_code(OK if value is not None else _NOT_FOUND, value or b"")

    def do_PUT(self) -> None:
        place = self._place()
        length = self.headers.get("Content-Length", "")
        if place is None or not self._is_proven(changes=True):
            return
        if not length.isdecimal():
            self.send_status_code(BAD_REQUEST)
            return
        if int(length) > _MOST_BYTES:
            self.send_status_code(_TOO_LARGE)
            return
        try:
            value = self.rfile.read(int(length))
        except socket.timeout:
            self.send_status_code(TIMEOUT)
            return
        if len(value) < int(length):
            self.send_status_code(BAD_REQUEST)
            return
        if not _signing.is_equal(_signing.hash_of(value), self.headers[_signing.BODY]):
            self.send_status_code(_FORBIDDEN)
            return
        with self.server.cache_lock:
            self.server.cache.setdefault(place[0], {})[place[1]] = value
        self.send_status_code(OK)

    def do_DELETE(self) -> None:
        place = self._place()
        if place is None or not self._is_proven(changes=True):
            return
        with self.server.cache_lock:
            self.server.cache.get(place[0], {}).pop(place[1], None)
        self.send_status_code(OK)

    def send_status_code(self, status_code: int, body: bytes = b"") -> None:
        self.send_response(status_code)
        self.send_header("Content-Length", str(len(body)))
        if self._nonce:
            digest = _signing.of_answer(self.server.key, self._nonce, self.path, body)
            self.send_header(_signing.DIGEST, digest)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not printed."""

    def _is_proven(self, changes: bool) -> bool:
        """Does the head come from a process with the key, and not a second time?"""
        nonce, digest, body_hash = (
            self.headers.get(name, "") for name in (_signing.NONCE, _signing.DIGEST, _signing.BODY)
        )
        wanted = _signing.of_request(self.server.key, nonce, self.command, self.path, body_hash)
        if not _signing.is_nonce(nonce) or not _signing.is_equal(digest, wanted):
            self.send_status_code(_FORBIDDEN)
            return False
        if changes:
            with self.server.cache_lock:
                is_old = nonce in self.server.nonces
                self.server.nonces.add(nonce)
            if is_old:
                self.send_status_code(_FORBIDDEN)
                return False
        self._nonce = nonce
        return True

    def _place(self) -> tuple[str, str] | None:
        parts = self.path.split("/")
        if len(parts) == 3 and parts[0] == "":
            return parts[1], parts[2]
        self.send_status_code(BAD_REQUEST)
        return None


class RendezvousHandler(KVStoreHandler):
    """The same."""


class KVStoreHTTPServer(ThreadingHTTPServer):
    """The values, in memory."""

    daemon_threads = True

    def __init__(self, addr: tuple[str, int], handler: Any, verbose: int = 0) -> None:
        super().__init__(addr, handler)
        self.cache_lock = threading.Lock()
        self.cache: dict[str, dict[str, bytes]] = {}
        self.nonces: set[str] = set()  # of requests that have changed a value
        self.key = _signing.key_for_a_server()
        self.verbose = verbose


class RendezvousHTTPServer(KVStoreHTTPServer):
    """The same; plans of places are taken, and change nothing."""

    def init(self, host_alloc_plan: Iterable[Any]) -> None:
        with self.cache_lock:
            self.cache.clear()


class KVStoreServer:
    """Keeps values at a free port, for processes that have its key."""

    def __init__(self, verbose: int = 0) -> None:
        self.httpd: KVStoreHTTPServer | None = None
        self.listen_thread: threading.Thread | None = None
        self.verbose = verbose

    def start_server(self) -> int:
        """Returns the port."""
        self.httpd = KVStoreHTTPServer(("", 0), KVStoreHandler, self.verbose)
        self.listen_thread = threading.Thread(target=self.httpd.serve_forever, daemon=True)
        self.listen_thread.start()
        return self.httpd.server_address[1]

    def shutdown_server(self) -> None:
        if self.httpd is not None:
            self.httpd.shutdown()
            self.httpd.server_close()
            self.httpd = None


class RendezvousServer:
    """A port where ranks meet, and their key; see the head of this module."""

    def __init__(self, verbose: int = 0) -> None:
        self._verbose = verbose
        self._key_file: str | None = None
        self._plan: list[Any] = []

    def start(self, handler_cls: Any = RendezvousHandler) -> int:
        """Returns the port. ``RUEDA_KEY_FILE`` names the key from now on, if it did not."""
        if not issubclass(handler_cls, KVStoreHandler):
            raise TypeError("handler_cls is a subclass of KVStoreHandler")
        if "RUEDA_KEY_FILE" not in os.environ:
            fd, self._key_file = tempfile.mkstemp(prefix="rueda-key-")
            with os.fdopen(fd, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(32) + "\n")
            os.environ["RUEDA_KEY_FILE"] = self._key_file
        with socket.socket() as probe:
            probe.bind(("", 0))
            return probe.getsockname()[1]

    def init(self, host_alloc_plan: Iterable[Any]) -> None:
        """The places of ranks, which they get by variables."""
        self._plan = list(host_alloc_plan)

    def stop(self) -> None:
        """Take the key away."""
        if self._key_file is None:
            return
        os.unlink(self._key_file)
        if os.environ.get("RUEDA_KEY_FILE") == self._key_file:
            del os.environ["RUEDA_KEY_FILE"]
        self._key_file = None
