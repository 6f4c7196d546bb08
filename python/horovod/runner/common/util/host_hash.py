# SPDX-License-Identifier: Apache-2.0
"""A name for this host, which containers do not share."""

from __future__ import annotations

import hashlib
import os
import socket

NAMESPACE_PATH = "/proc/self/ns"


def _namespaces() -> str:
    try:
        return " ".join(
            os.readlink(os.path.join(NAMESPACE_PATH, name))
            for name in sorted(os.listdir(NAMESPACE_PATH))
        )
    except OSError:
        return ""


def host_hash(salt: str | None = None) -> str:
    """The host's short name and a digest of name, namespaces and salt."""
    name = socket.gethostname()
    text = f"{name}-{_namespaces()}" + (f"-{salt}" if salt is not None else "")
    short = name.split(".")[0]
    return f"{short}-{hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()}"
