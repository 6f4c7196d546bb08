# SPDX-License-Identifier: Apache-2.0
"""How the key-value servers and their clients prove that they belong together.

Each request carries a random number and an HMAC of itself; the answer carries an HMAC
of itself and of that number. So neither can be changed or moved to another place, and a
server takes no request twice that changes a value. Values pass unencrypted.

The key is in the variable by which Horovod's launchers hand one to their processes. A
process that starts a server without that variable makes a key and sets it; the
processes that it starts inherit it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from hmac import compare_digest

from ..common.util.codec import dumps_base64, loads_base64
from ..common.util.secret import (
    DIGEST_LENGTH,
    HOROVOD_SECRET_KEY,
    compute_digest,
    make_secret_key,
)

NONCE = "X-Rueda-Nonce"
DIGEST = "X-Rueda-Digest"
BODY = "X-Rueda-Body"  # a hash of it, so that the head proves all of a request

_NONCE_BYTES = 16


def key_of_this_process() -> bytes:
    """The key that this process was given, or has made."""
    text = os.environ.get(HOROVOD_SECRET_KEY)
    if not text:
        raise PermissionError(
            f"this process has no key for the key-value server: {HOROVOD_SECRET_KEY} is not set. "
            "The process that starts the server sets it; start this one from there, or hand "
            "the variable on"
        )
    key = loads_base64(text)  # of our own environment, which is trusted
    if not isinstance(key, bytes) or len(key) < DIGEST_LENGTH // 2:
        raise ValueError(f"{HOROVOD_SECRET_KEY} holds no key of make_secret_key()")
    return key


def key_for_a_server() -> bytes:
    """The same; it is made, and set for processes that are started from here, if need be."""
    if not os.environ.get(HOROVOD_SECRET_KEY):
        os.environ[HOROVOD_SECRET_KEY] = str(dumps_base64(make_secret_key()))
    return key_of_this_process()


def new_nonce() -> str:
    return secrets.token_hex(_NONCE_BYTES)


def is_nonce(text: str) -> bool:
    try:
        return len(bytes.fromhex(text)) == _NONCE_BYTES
    except ValueError:
        return False


def _digest(key: bytes, *parts: bytes) -> str:
    """No two lists of parts have the same bytes: each comes behind its length."""
    message = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    return compute_digest(key, message).hex()


def hash_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def of_request(key: bytes, nonce: str, method: str, path: str, body_hash: str) -> str:
    words = (nonce, method, path, body_hash)
    return _digest(key, b"request", *(word.encode() for word in words))


def of_answer(key: bytes, nonce: str, path: str, body: bytes) -> str:
    return _digest(key, b"answer", nonce.encode(), path.encode(), body)


def is_equal(digest: str, wanted: str) -> bool:
    """Takes as long if not."""
    return compare_digest(digest.encode(), wanted.encode())
