# SPDX-License-Identifier: Apache-2.0
"""Any object, the same on all ranks or gathered from all ranks.

Objects travel as pickles in plain memory, so no framework is needed and every
binding offers these functions as they are. ``_pack`` and ``_unpack`` are the only
places that pickle and unpickle what ranks send each other.
"""

from __future__ import annotations

import ctypes
import io
import pickle
from typing import Any

from rueda import _core

from .operations import key_of, set_of
from .process_sets import ProcessSet, global_process_set

__all__ = ["allgather_object", "broadcast_object"]


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the root's object on all ranks; on the root that is obj itself.

    ``root_rank`` is a rank of the job, also in a process set. The other ranks
    may pass anything, for example None.
    """
    name = name or "broadcast_object"
    number = set_of(process_set)
    is_root = _core.rank() == root_rank
    data = _pack(obj) if is_root else bytearray()
    size = (ctypes.c_int64 * 1)(len(data))
    _broadcast(size, _core.DTYPE_INT64, 1, root_rank, f"{name}.sz", number)
    if not is_root:
        data = bytearray(size[0])
    _broadcast(_memory_of(data), _core.DTYPE_UINT8, len(data), root_rank, f"{name}.t", number)
    return obj if is_root else _unpack(data)


def allgather_object(
    obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """Return the objects of all ranks of the set, in the order of the ranks."""
    name = name or "allgather_object"
    number = set_of(process_set)
    members = process_set.ranks or [0]
    data = _pack(obj)
    size = (ctypes.c_int64 * 1)(len(data))
    sizes = (ctypes.c_int64 * len(members))()
    _allgather(size, sizes, _core.DTYPE_INT64, 1, f"{name}.sz", number)
    gathered = bytearray(sum(sizes))
    memory = _memory_of(gathered)
    _allgather(_memory_of(data), memory, _core.DTYPE_UINT8, len(data), f"{name}.t", number)
    del memory  # so that the bytes can be cut
    objects, start = [], 0
    for length in sizes:
        objects.append(_unpack(memoryview(gathered)[start : start + length]))
        start += length
    return objects


# ---- Bytes ------------------------------------------------------------------


def _pack(obj: Any) -> bytearray:
    """Pickle by cloudpickle, which knows lambdas and local classes, where it is installed."""
    try:
        from cloudpickle import dump
    except ImportError:
        from pickle import dump
    file = io.BytesIO()
    dump(obj, file, protocol=pickle.HIGHEST_PROTOCOL)
    return bytearray(file.getbuffer())


def _unpack(data: bytearray | memoryview) -> Any:
    return pickle.loads(data)


def _memory_of(data: bytearray) -> Any:
    return (ctypes.c_char * len(data)).from_buffer(data)


def _broadcast(memory: Any, dtype: int, count: int, root_rank: int, name: str, number: int) -> None:
    place = ctypes.addressof(memory)
    key = key_of("broadcast", name)
    _finish(
        _core.submit(
            _core.KIND_BROADCAST, key, number, dtype, place, place, (count,), root=root_rank
        ),
        memory,
    )


def _allgather(send: Any, recv: Any, dtype: int, count: int, name: str, number: int) -> None:
    _finish(
        _core.submit(
            _core.KIND_ALLGATHER, key_of("allgather", name), number, dtype,
            ctypes.addressof(send), ctypes.addressof(recv), (count,),
        ),
        (send, recv),
    )  # fmt: skip


def _finish(core: int, memory: Any) -> None:
    """Wait. Where Ctrl-C ends the wait, the operation keeps its memory until it has ended."""
    from . import handles

    handles.synchronize(handles.add((core,), None, memory))
