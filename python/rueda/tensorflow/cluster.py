# SPDX-License-Identifier: Apache-2.0
"""``TF_CONFIG`` for strategies of TensorFlow, which open connections of their own.

What it says to :func:`rueda.tensorflow.init` is read by rueda.places.
"""

from __future__ import annotations

import json
import os
import random
import socket

from rueda import places
from rueda.common.basics import basics
from rueda.common.objects import allgather_object

__all__ = ["tf_config"]

# Below those that Linux gives to connections.
_FIRST_PORT, _LAST_PORT = 20000, 29999
_ATTEMPTS = 100


def tf_config() -> str:
    """Set ``TF_CONFIG`` so that every rank is a worker, and return it; all ranks call this.

    For ``tf.distribute.MultiWorkerMirroredStrategy``, which reads it when it is made, before
    TensorFlow runs its first op. The ports are free when they are chosen; Rueda never keeps
    one. A ``TF_CONFIG`` in which this rank is the task that it is here stays as it is.
    """
    known = os.environ.get("TF_CONFIG", "")
    is_known = _says_what_we_are(known)
    if all(allgather_object(is_known, "tf_config.known")):
        return known
    host = _host()
    for _ in range(_ATTEMPTS):
        workers = allgather_object(f"{host}:{_free_port()}", "tf_config.workers")
        if len(set(workers)) == len(workers):
            break
    else:
        raise RuntimeError("tf_config() found no free ports for all ranks of this host")
    task = {"type": "worker", "index": basics.rank()}
    text = json.dumps({"cluster": {"worker": workers}, "task": task})
    os.environ["TF_CONFIG"] = text
    return text


def _says_what_we_are(text: str) -> bool:
    try:
        place = places.from_tf_config(text)
    except ValueError:
        return False
    return (place.rank, place.size) == (basics.rank(), basics.size())


def _host() -> str:
    """A name of this host that the others can use."""
    if basics.cross_size() == 1:
        return "localhost"
    given = os.environ.get("HOROVOD_HOSTNAME", "")
    is_loopback = given in ("", "localhost", "::1") or given.startswith("127.")
    return socket.gethostname() if is_loopback else given


def _free_port() -> int:
    for _ in range(_ATTEMPTS):
        port = random.SystemRandom().randint(_FIRST_PORT, _LAST_PORT)
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no port from {_FIRST_PORT} to {_LAST_PORT} is free on this host")
