# SPDX-License-Identifier: Apache-2.0
"""Horovod's key-value server: what has no key neither changes a value nor is believed."""

from __future__ import annotations

import http.server
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from horovod.runner.common.util import codec, secret
from horovod.runner.http import _signing, http_client
from horovod.runner.http.http_server import KVStoreServer

LIMIT_S = 60
HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def new_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(secret.HOROVOD_SECRET_KEY, "")


@pytest.fixture
def port() -> Iterator[int]:
    server = KVStoreServer()
    yield server.start_server()
    server.shutdown_server()


class Trap:
    """Running its pickle leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def ask(port: int, method: str, path: str, body: bytes, headers: dict[str, str]) -> int:
    connection = HTTPConnection(HOST, port, timeout=LIMIT_S)
    connection.request(method, path, body, headers)
    return connection.getresponse().status


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_request_without_the_key_is_refused(port: int, method: str, tmp_path: Path) -> None:
    http_client.put_data_into_kvstore(HOST, port, "scope", "key", "right")
    trap = pickle.dumps(Trap(tmp_path / "ran"))
    assert ask(port, method, "/scope/key", trap, {}) == 403
    nonce, body = _signing.new_nonce(), _signing.hash_of(trap)
    for key in (b"", secret.make_secret_key()):
        digest = _signing.of_request(key, nonce, method, "/scope/key", body)
        headers = {_signing.NONCE: nonce, _signing.BODY: body, _signing.DIGEST: digest}
        assert ask(port, method, "/scope/key", trap, headers) == 403
    assert http_client.read_data_from_kvstore(HOST, port, "scope", "key") == "right"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("change", ["method", "path", "body", "nonce"])
def test_a_request_that_was_changed_is_refused(port: int, change: str) -> None:
    body = pickle.dumps("right")
    said = {"method": "PUT", "path": "/scope/key", "nonce": _signing.new_nonce()}
    digest = _signing.of_request(
        _signing.key_of_this_process(), said["nonce"], said["method"], said["path"],
        _signing.hash_of(body),
    )  # fmt: skip
    headers = {_signing.BODY: _signing.hash_of(body), _signing.DIGEST: digest}
    other = {"method": "DELETE", "path": "/scope/other", "nonce": _signing.new_nonce()}
    if change in said:
        said[change] = other[change]
    else:
        body = pickle.dumps("wrong")
    headers[_signing.NONCE] = said["nonce"]
    assert ask(port, said["method"], said["path"], body, headers) == 403
    with pytest.raises(HTTPError, match="404"):
        http_client.read_data_from_kvstore(HOST, port, "scope", "key")


def test_a_request_that_changes_a_value_is_taken_once(port: int) -> None:
    nonce, body = _signing.new_nonce(), pickle.dumps("old")
    digest = _signing.of_request(
        _signing.key_of_this_process(), nonce, "PUT", "/scope/key", _signing.hash_of(body)
    )
    headers = {_signing.NONCE: nonce, _signing.BODY: _signing.hash_of(body)}
    headers[_signing.DIGEST] = digest
    assert ask(port, "PUT", "/scope/key", body, headers) == 200
    http_client.put_data_into_kvstore(HOST, port, "scope", "key", "new")
    assert ask(port, "PUT", "/scope/key", body, headers) == 403
    assert http_client.read_data_from_kvstore(HOST, port, "scope", "key") == "new"


@contextmanager
def impostor(body: bytes, headers: dict[str, str]) -> Iterator[int]:
    """A server that answers each question with this."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed."""

    server = http.server.HTTPServer((HOST, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("is_repeated", [False, True])
def test_an_answer_without_the_key_is_not_unpickled(tmp_path: Path, is_repeated: bool) -> None:
    """Nor one that the right server gave to another question."""
    key = _signing.key_for_a_server()
    body = pickle.dumps(Trap(tmp_path / "ran"))
    headers = {}
    if is_repeated:
        digest = _signing.of_answer(key, _signing.new_nonce(), "/scope/key", body)
        headers = {_signing.DIGEST: digest}
    with impostor(body, headers) as port, pytest.raises(PermissionError, match="not unpickled"):
        http_client.read_data_from_kvstore(HOST, port, "scope", "key")
    assert not (tmp_path / "ran").exists()


READ = """
import sys
from horovod.runner.http.http_client import read_data_from_kvstore
print(read_data_from_kvstore("127.0.0.1", int(sys.argv[1]), "scope", "key"))
"""


def test_processes_that_the_server_starts_have_the_key(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", READ, str(port)]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)

    http_client.put_data_into_kvstore(HOST, port, "scope", "key", [1, "two"])
    assert read().stdout == "[1, 'two']\n"
    monkeypatch.delenv(secret.HOROVOD_SECRET_KEY)
    assert "_HOROVOD_SECRET_KEY is not set" in read().stderr
    monkeypatch.setenv(secret.HOROVOD_SECRET_KEY, str(codec.dumps_base64(secret.make_secret_key())))
    assert "403" in read().stderr
