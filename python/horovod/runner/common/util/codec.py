# SPDX-License-Identifier: Apache-2.0
"""Objects as text. Only what comes from yourself should be loaded: it is unpickled."""

from __future__ import annotations

import base64
import pickle
from typing import Any


def dumps_base64(obj: Any, to_ascii: bool = True) -> str | bytes:
    """The object, pickled (by cloudpickle if that is there), in base64."""
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle  # type: ignore[misc]
    encoded = base64.b64encode(pickler.dumps(obj))
    return encoded.decode("ascii") if to_ascii else encoded


def loads_base64(encoded: str | bytes) -> Any:
    return pickle.loads(base64.b64decode(encoded))
