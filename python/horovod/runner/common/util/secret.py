# SPDX-License-Identifier: Apache-2.0
"""Keys, and digests by which their holders know each other."""

from __future__ import annotations

import hashlib
import hmac
import secrets

SECRET_LENGTH = 32
DIGEST_LENGTH = 32
HOROVOD_SECRET_KEY = "_HOROVOD_SECRET_KEY"


def make_secret_key() -> bytes:
    """A new random key."""
    return secrets.token_bytes(SECRET_LENGTH)


def compute_digest(key: bytes, message: bytes) -> bytes:
    """The HMAC-SHA-256 of the message."""
    return hmac.digest(key, message, hashlib.sha256)


def check_digest(key: bytes, message: bytes, digest: bytes) -> bool:
    """Is it the digest of the message? Takes as long if not."""
    return hmac.compare_digest(compute_digest(key, message), digest)
