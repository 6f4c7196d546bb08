# SPDX-License-Identifier: Apache-2.0
"""Reading and writing a :class:`~horovod.runner.http.http_server.KVStoreServer`.

What is read is unpickled, so it runs code here. So requests and answers are signed
(:mod:`horovod.runner.http._signing`), and nothing is unpickled that is not.
"""

from __future__ import annotations

import pickle
from typing import Any
from urllib.request import Request, urlopen

from . import _signing

_LIMIT_S = 30


def _ask(addr: str, port: int, method: str, path: str, body: bytes = b"") -> bytes:
    key = _signing.key_of_this_process()
    nonce, body_hash = _signing.new_nonce(), _signing.hash_of(body)
    request = Request(
        f"http://{addr}:{port}{path}",
        data=body if method == "PUT" else None,
        method=method,
        headers={
            _signing.NONCE: nonce,
            _signing.BODY: body_hash,
            _signing.DIGEST: _signing.of_request(key, nonce, method, path, body_hash),
        },
    )
    with urlopen(request, timeout=_LIMIT_S) as answer:
        found: bytes = answer.read()
        digest = answer.headers.get(_signing.DIGEST, "")
    if not _signing.is_equal(digest, _signing.of_answer(key, nonce, path, found)):
        raise PermissionError(
            f"the answer of {addr}:{port} to {method} {path} is not signed with the key of this "
            "process, so it is not unpickled: it comes from another server, or was changed on "
            "the way"
        )
    return found


def read_data_from_kvstore(addr: str, port: int, scope: str, key: str) -> Any:
    """What :func:`put_data_into_kvstore` has put there.

    ``PermissionError``: the server does not have the key of this process.
    """
    return pickle.loads(_ask(addr, port, "GET", f"/{scope}/{key}"))


def put_data_into_kvstore(addr: str, port: int, scope: str, key: str, value: Any) -> None:
    """Put an object there, pickled (by cloudpickle if that is there)."""
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle  # type: ignore[misc]
    _ask(addr, port, "PUT", f"/{scope}/{key}", pickler.dumps(value))
