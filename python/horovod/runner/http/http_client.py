# SPDX-License-Identifier: Apache-2.0
"""Reading and writing a :class:`~horovod.runner.http.http_server.KVStoreServer`."""

from __future__ import annotations

import pickle
from typing import Any
from urllib.request import Request, urlopen

_LIMIT_S = 30


def read_data_from_kvstore(addr: str, port: int, scope: str, key: str) -> Any:
    """What :func:`put_data_into_kvstore` has put there. It is unpickled: trust the server."""
    with urlopen(f"http://{addr}:{port}/{scope}/{key}", timeout=_LIMIT_S) as answer:
        return pickle.loads(answer.read())


def put_data_into_kvstore(addr: str, port: int, scope: str, key: str, value: Any) -> None:
    """Put an object there, pickled (by cloudpickle if that is there)."""
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle  # type: ignore[misc]
    url = f"http://{addr}:{port}/{scope}/{key}"
    with urlopen(Request(url, data=pickler.dumps(value), method="PUT"), timeout=_LIMIT_S):
        pass
