# SPDX-License-Identifier: Apache-2.0
"""Places in a job, and ways to the others, that only Python can find.

``rueda_init()`` reads the variables of most launchers by itself. Two things
are left to Python: the store that torch has opened already, and ``TF_CONFIG``,
which is JSON. Nothing here imports a framework before it is called.
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Callable, NamedTuple

from rueda import _core

__all__ = [
    "Exchange",
    "Place",
    "find_tf_config",
    "find_torchrun",
    "from_tf_config",
    "is_mpi",
    "torch_exchange",
]

#: Passes rank 0's bytes to all ranks: takes a rank and its bytes, returns rank
#: 0's. It may block, and what it carries is secret.
Exchange = Callable[[int, bytes], bytes]


class Place(NamedTuple):
    """What ``rueda_init()`` has to be told where it cannot find out itself."""

    rank: int
    size: int
    store: str  #: "host:port", where the ranks meet


# How rueda_init() knows each launcher, in its order: by all variables of one of
# these rows.
_LAUNCHERS = (
    ("RUEDA_RANK",),
    ("HOROVOD_RANK",),
    ("TORCHELASTIC_RUN_ID",),
    ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    ("OMPI_COMM_WORLD_RANK",),
    ("PMI_RANK",),
    ("SLURM_STEP_ID",),
)


def _nearest(environment: Mapping[str, str]) -> str | None:
    """The first variable of the nearest launcher."""
    for names in _LAUNCHERS:
        if all(environment.get(name) for name in names):
            return names[0]
    return None


# ---- torch ------------------------------------------------------------------

_PAUSE_S = 0.01


def find_torchrun(environment: Mapping[str, str] = os.environ) -> int | None:
    """Return my rank if torchrun is the nearest launcher, else None.

    A program that sets ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and
    ``MASTER_PORT`` counts as torchrun.
    """
    if _nearest(environment) not in ("TORCHELASTIC_RUN_ID", "RANK"):
        return None
    return int(environment["RANK"])


def torch_exchange(store: Any = None, size: int | None = None, timeout_s: float = 30.0) -> Exchange:
    """Return an exchange that goes through torch's store.

    Without a store it is the one of ``MASTER_ADDR`` and ``MASTER_PORT``: the
    agent's under torchrun, else one that rank 0 opens, as in
    ``init_process_group("env://")``. With a store, say the number of ranks too.

    Each call may take up to ``timeout_s`` seconds; a :class:`TimeoutError` then
    names the missing ranks. Keep the exchange until ``rueda_init()`` returns,
    because it may hold the store. What passes is sealed for the rank that asks, so a
    process that only reads what is in the store learns nothing; torch asks for no
    key, so one that writes there too can put itself in the place of a rank.
    """
    dist = importlib.import_module("torch.distributed")
    if store is None:
        limit = timedelta(seconds=timeout_s)
        store, _, size = next(dist.rendezvous("env://", timeout=limit))
    if size is None:
        raise ValueError("a store does not know how many ranks there are; give size")
    ranks = size
    box = dist.PrefixStore("rueda", store)

    def exchange(rank: int, data: bytes) -> bytes:
        deadline = time.monotonic() + timeout_s
        if rank > 0:
            return _ask(box, rank, deadline)
        _answer(box, ranks, data, deadline)
        return data

    return exchange


# A question has the name of its answer and the public key that it is sealed for.
_PUBLIC_DIGITS = 64

# The store outlives restarts of the ranks, and no number that torchrun gives
# tells one start from the next on all hosts: TORCHELASTIC_RESTART_COUNT counts
# failures of one host, and not those of others. So nothing is found under a
# name that was ever used before: every rank asks for an answer at a name that
# it has just made up, and takes the answer away when it has read it.
#
# Old versions of torch cannot say whether a key is there without waiting for
# it, but all of them say whether one was there that is deleted now. Hence two
# keys that are flags: asked/<rank>, and <name of an answer>/taken. A question
# stays, since rank 0 would wait for one that is gone when it has seen the flag.


def _ask(box: Any, rank: int, deadline: float) -> bytes:
    name = f"answer/{secrets.token_hex(16)}"
    public, opener = _core.envelope_opener()
    box.set(f"question/{rank}", f"{name} {public.hex()}")
    box.set(f"asked/{rank}", "")
    left = timedelta(seconds=max(deadline - time.monotonic(), 0.001))
    try:
        box.wait([name], left)
    except RuntimeError as error:
        raise TimeoutError(
            f"rank {rank} had no answer from rank 0 through torch's store; is rank 0 running?"
        ) from error
    envelope: bytes = box.get(name)
    box.delete_key(f"asked/{rank}")
    box.delete_key(name)
    box.set(f"{name}/taken", "")
    return _core.envelope_open(public, opener, envelope)


def _answer(box: Any, size: int, data: bytes, deadline: float) -> None:
    """Answer until every rank has taken an answer away."""
    waiting = set(range(1, size))
    latest: dict[int, str] = {}  # the name at which a rank was answered
    used: set[str] = set()
    try:
        while waiting:
            for rank in sorted(waiting):
                if rank in latest and box.delete_key(f"{latest[rank]}/taken"):
                    waiting.discard(rank)
                elif box.delete_key(f"asked/{rank}"):
                    # A question of a rank that has died may come first.
                    name, _, public = box.get(f"question/{rank}").decode().partition(" ")
                    if len(public) != _PUBLIC_DIGITS:
                        continue  # of another version: it would not understand us either
                    latest[rank] = name
                    box.set(name, _core.envelope_seal(bytes.fromhex(public), data))
                    used.add(name)
            if waiting and time.monotonic() > deadline:
                names = ", ".join(str(rank) for rank in sorted(waiting)[:8])
                more = " and others" if len(waiting) > 8 else ""
                raise TimeoutError(
                    f"of {size} ranks these did not come to torch's store in time: "
                    f"{names}{more}; are they running?"
                )
            if waiting:
                time.sleep(_PAUSE_S)
    finally:
        # What no rank took is of no use to any.
        for name in used:
            box.delete_key(name)


# ---- TensorFlow -------------------------------------------------------------

#: The store's port is that of rank 0's entry plus this.
PORT_STEP = 1000


def find_tf_config(environment: Mapping[str, str] = os.environ) -> Place | None:
    """Return the place that ``TF_CONFIG`` gives if no nearer launcher gives one.

    None where it is not set, and where a launcher is there that
    ``rueda_init()`` reads by itself.
    """
    text = environment.get("TF_CONFIG")
    if not text or _nearest(environment) is not None:
        return None
    return from_tf_config(text)


def from_tf_config(text: str) -> Place:
    """Return the place that this value of ``TF_CONFIG`` gives to its task.

    The chief (or master) is rank 0, workers follow in the order of their list;
    parameter servers and evaluators are no ranks. The ranks meet at the host of
    rank 0's entry. Its port is taken by TensorFlow's own server, so the store
    is at that port plus 1000, or minus 1000 where there is no such port, and
    then upwards to the first that the cluster does not use.

    Raises :class:`ValueError` that says what is wrong.
    """
    config = _parse(text)
    cluster = _cluster_of(config)
    chiefs = cluster.get("chief", []) + cluster.get("master", [])
    if len(chiefs) > 1:
        raise _wrong(f"the cluster has {len(chiefs)} chiefs or masters; it can have one")
    ranks = chiefs + cluster.get("worker", [])
    if not ranks:
        raise _wrong("the cluster has neither a chief nor workers")
    for address in ranks:
        if ranks.count(address) > 1:
            raise _wrong(f'the address "{address}" is there twice')
    kind, index = _task_of(config, cluster)
    return Place(
        rank=index + (len(chiefs) if kind == "worker" else 0),
        size=len(ranks),
        store=_store_of(ranks[0], [one for tasks in cluster.values() for one in tasks]),
    )


def _wrong(what: str) -> ValueError:
    return ValueError(f"TF_CONFIG: {what}")


def _parse(text: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except ValueError as error:
        raise _wrong(f"not JSON: {error}") from error
    if not isinstance(config, dict):
        raise _wrong('not a JSON object with "cluster" and "task"')
    return config


def _cluster_of(config: dict[str, Any]) -> dict[str, list[str]]:
    cluster = config.get("cluster")
    if not isinstance(cluster, dict) or not cluster:
        raise _wrong('no "cluster" with lists of addresses')
    for kind, tasks in cluster.items():
        if not isinstance(tasks, list):
            raise _wrong(f'"{kind}" of the cluster is not a list of addresses')
        for address in tasks:
            _split(address)
    return cluster


def _task_of(config: dict[str, Any], cluster: dict[str, list[str]]) -> tuple[str, int]:
    task = config.get("task")
    if not isinstance(task, dict) or "type" not in task or "index" not in task:
        raise _wrong('no "task" with "type" and "index"')
    kind, index = task["type"], str(task["index"])
    if kind in ("ps", "evaluator"):
        raise _wrong(f'a task of type "{kind}" is no rank; start Rueda in chief and workers only')
    if kind not in ("chief", "master", "worker") or kind not in cluster:
        raise _wrong(f'the task is of type "{kind}", of which the cluster has none')
    count = len(cluster[kind])
    if not index.isdecimal() or int(index) >= count:
        raise _wrong(f"the task is {kind} {index}; the cluster has {count} of them, from 0")
    return kind, int(index)


def _split(address: object) -> tuple[str, int]:
    host, colon, port = str(address).rpartition(":")
    # A bare IPv6 address would lose its last part to the port.
    is_bare = ":" in host and not (host.startswith("[") and host.endswith("]"))
    if not isinstance(address, str) or not colon or not host or is_bare:
        raise _wrong(f'"{address}" is not an address; it should look like host:2222')
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise _wrong(f'"{port}" in "{address}" is not a port')
    return host, int(port)


def _store_of(first: str, addresses: list[str]) -> str:
    """All ranks see the same list, and so choose the same port."""
    host, port = _split(first)
    taken = {_split(address)[1] for address in addresses}
    port += PORT_STEP if port + PORT_STEP < 65536 else -PORT_STEP
    while port in taken:
        port = port + 1 if port < 65535 else 1024
    return f"{host}:{port}"


# ---- MPI --------------------------------------------------------------------


def is_mpi(environment: Mapping[str, str] = os.environ) -> bool:
    """Is a launcher of MPI's, such as mpirun, the nearest one?"""
    return _nearest(environment) in ("OMPI_COMM_WORLD_RANK", "PMI_RANK")
