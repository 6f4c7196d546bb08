# SPDX-License-Identifier: Apache-2.0
"""The job under the process groups: how it begins, and the ids of its sets.

The first process group opens the context, unless ``rueda.torch.init()`` has done so, and
the last one to go closes what it has opened. Each group is a private process set, which
its members make without the other ranks. Its lowest member takes the id from a counter
in torch's store and passes it on through that store.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import time
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from rueda import _core
from rueda.common.basics import basics

__all__ = ["GroupError", "close", "milliseconds", "open_set"]

#: What a failed operation raises: the class that torch's own back ends use.
GroupError: type[RuntimeError] = getattr(dist, "DistBackendError", RuntimeError)

_FIRST_ID = 1 << 19  # RUEDA_PRIVATE_SETS
_MOST_MS = 2**31 - 1


class _Job:
    """What all process groups of this process share."""

    def __init__(self) -> None:
        self.box: Any = None  # a part of the store of the default group
        self.made: dict[tuple[int, ...], int] = {}  # how many groups of these ranks
        self.begun = 0  # how many default groups there were
        self.base = _FIRST_ID  # the counter of the store begins there
        self.highest = _FIRST_ID - 1  # of all ids that this rank has seen
        self.is_ours = False  # the context was opened here
        self.groups = 0
        self.process = 0
        self.crowded: bool | None = None  # not looked yet


_job = _Job()


def is_crowded() -> bool:
    """Are the ranks on one host, with less than two cores for each?"""
    if _job.crowded is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        ranks = _core.local_size()
        _job.crowded = ranks == _core.size() and cores < 2 * ranks
    return _job.crowded


def milliseconds(limit: timedelta) -> int:
    """As the library wants it; at least 1, at most what fits."""
    return max(1, min(round(limit.total_seconds() * 1000), _MOST_MS))


def _is_launched_as(rank: int, size: int) -> bool:
    """Does our own launcher give this process just this place?"""
    return (os.environ.get("RUEDA_RANK"), os.environ.get("RUEDA_SIZE")) == (str(rank), str(size))


def _open_context(rank: int, size: int, timeout: timedelta) -> None:
    if _is_launched_as(rank, size):
        basics.init()
        return
    carry = _Carrier(rank, size, timeout)
    try:
        basics.init_at(rank, size, milliseconds(timeout), carry)
    finally:
        carry.forget()


def _delete(key: str) -> None:
    try:
        _job.box.delete_key(key)
    except RuntimeError:
        _job.box.set(key, "")  # a store that cannot delete


class _Carrier:
    """Passes rank 0's bytes to all ranks through the store, sealed for each of them."""

    def __init__(self, rank: int, size: int, timeout: timedelta) -> None:
        self._rank = rank
        self._size = size
        self._timeout = timeout
        self._calls = 0
        self._keys: list[str] = []  # that this rank has set

    def __call__(self, data: bytes) -> bytes:
        name = f"exchange/{self._calls}"
        self._calls += 1
        if self._rank > 0:
            return self._take(name)
        for rank in range(1, self._size):
            public = self._wait(f"{name}/public/{rank}", rank)
            self._set(f"{name}/sealed/{rank}", _core.envelope_seal(public, data))
        return data

    def _take(self, name: str) -> bytes:
        public, opener = _core.envelope_opener()
        self._set(f"{name}/public/{self._rank}", public)
        return _core.envelope_open(public, opener, self._wait(f"{name}/sealed/{self._rank}", 0))

    def _set(self, key: str, data: bytes) -> None:
        self._keys.append(key)
        _job.box.set(key, data.hex())

    def _wait(self, key: str, whose: int) -> bytes:
        try:
            _job.box.wait([key], self._timeout)
        except RuntimeError as error:
            raise GroupError(
                f"rank {self._rank} had no answer from rank {whose} through torch's store within "
                f"{self._timeout}; is rank {whose} running?"
            ) from error
        return bytes.fromhex(_job.box.get(key).decode())

    def forget(self) -> None:
        """All ranks have the bytes, or none needs them any more."""
        for key in self._keys:
            _delete(key)


def _agree_on_base() -> int:
    """A number above all ids that any rank has seen: the store may be a new one."""
    room = (ctypes.c_int64 * 1)(_job.highest)
    place = ctypes.addressof(room)
    core = _core.submit(
        _core.KIND_ALLREDUCE, "rueda.c10d.ids", 0, _core.DTYPE_INT64, place, place, (1,),
        _core.REDUCTION_MAX,
    )  # fmt: skip
    _core.wait(core)
    return room[0]


def _begin(store: Any, rank: int, size: int, timeout: timedelta) -> None:
    """The default group is made: see to it that there is a context."""
    if _job.process != os.getpid():
        _job.__init__()  # type: ignore[misc]  # a child's copy of its parent's
        _job.process = os.getpid()
    _job.made.clear()
    _job.crowded = None
    # Torch gives a store of their own to processes that are started again; those that
    # make the group again after they have destroyed it count.
    _job.begun += 1
    _job.box = dist.PrefixStore(f"rueda/{_job.begun}", store)
    if not _core.is_initialized():
        _open_context(rank, size, timeout)
        _job.is_ours = True
        _job.highest = _FIRST_ID - 1
        _job.groups = 0
        return
    if (rank, size) != (_core.rank(), _core.size()):
        raise ValueError(
            f"init_process_group() has rank {rank} of {size}, but this process is rank "
            f"{_core.rank()} of {_core.size()} of a Rueda job already; give both the same"
        )
    _job.base = _agree_on_base() + 1


def _next_key(ranks: tuple[int, ...]) -> str:
    """All members make groups of these ranks in one order, so they come to the same key."""
    count = _job.made[ranks] = _job.made.get(ranks, 0) + 1
    digest = hashlib.sha256(repr(ranks).encode()).hexdigest()
    return f"set/{digest}/{count}"


def _agree_on_id(key: str, rank: int, ranks: tuple[int, ...], timeout: timedelta) -> int:
    """The lowest member takes a number, which the others find at the key."""
    if rank == 0:
        number = _job.base + _job.box.add("sets", 1) - 1
        if len(ranks) > 1:
            _job.box.set(key, str(number))
        return number  # type: ignore[no-any-return]
    try:
        _job.box.wait([key], timeout)
    except RuntimeError as error:
        raise GroupError(
            f"rank {ranks[rank]} waited for {timeout} until rank {ranks[0]} makes a process group "
            f"of the ranks {list(ranks)}; all members make it"
        ) from error
    return int(_job.box.get(key))


def open_set(store: Any, rank: int, ranks: list[int], size: int, timeout: timedelta) -> int:
    """Make the set of a process group, and return its id; ``ranks`` is empty for all.

    Members only call this. ``rank`` is the place of this process among them.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    if not ranks:
        _begin(store, rank, size, timeout)
        ranks = list(range(size))
    elif not _core.is_initialized():
        raise RuntimeError(
            'the default process group is not one of Rueda; call init_process_group("rueda"), '
            'or rueda.torch.init() before it, to make groups with backend="rueda"'
        )
    elif _job.box is None:
        _job.box = dist.PrefixStore("rueda", dist.distributed_c10d._get_default_store())
        _job.process = os.getpid()
    key = _next_key(tuple(ranks))
    number = _agree_on_id(key, rank, tuple(ranks), timeout)
    core = _core.set_open(number, tuple(ranks))
    left = timedelta(seconds=max(deadline - time.monotonic(), 0.001))
    if not _core.wait_until(core, milliseconds(left)):
        _core.forget(core)
        raise GroupError(
            f"rank {ranks[rank]} waited for {timeout} until the ranks {ranks} make a process "
            "group together; some of them did not come"
        )
    if rank == 0 and len(ranks) > 1:
        _delete(key)  # the set is there, so all members have read it
    _job.highest = max(_job.highest, number)
    _job.groups += 1
    return number


def close(number: int) -> None:
    """Leave a set; it is gone when all members have left it. Does not wait."""
    _job.groups -= 1
    if not _core.is_initialized() or _job.process != os.getpid():
        return
    try:
        _core.forget(_core.set_close(number))
    except (RuntimeError, ValueError):
        pass  # the job has failed, and the set is gone with it
    if _job.groups == 0 and _job.is_ours:
        _job.is_ours = False
        basics.shutdown()
