# SPDX-License-Identifier: Apache-2.0
"""Any object, the same on all ranks or gathered from all ranks.

Objects travel as pickles in plain memory, so no framework is needed and every
binding offers these functions as they are. ``_pack`` and ``_unpack`` are the only
places that pickle and unpickle what ranks send each other.

A pickle runs code, and tensors may travel unprotected. So before each object goes a
head that its sender has sealed under a key of the job (``src/auth/object.h``), for
this call and no other, and only what fits its head is unpickled.
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
    may pass anything, for example None. The object is pickled, by cloudpickle where that is
    installed. One that was changed on the way is not unpickled, and raises RuntimeError.
    """
    name = name or "broadcast_object"
    number = set_of(process_set)
    call = _Call(_BROADCAST, name, number)
    is_root = _core.rank() == root_rank
    data = _pack(obj) if is_root else bytearray()
    head = bytearray(call.seal(data) if is_root else _HEAD_BYTES)
    _broadcast(_memory_of(head), _core.DTYPE_UINT8, len(head), root_rank, f"{name}.sz", number)
    if not is_root:
        data = bytearray(call.length(root_rank, bytes(head)))
    _broadcast(_memory_of(data), _core.DTYPE_UINT8, len(data), root_rank, f"{name}.t", number)
    if is_root:
        return obj
    call.check(root_rank, bytes(head), data)
    return _unpack(data)


def allgather_object(
    obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """Return the objects of all ranks of the set, in the order of the ranks."""
    name = name or "allgather_object"
    number = set_of(process_set)
    call = _Call(_ALLGATHER, name, number)
    members = process_set.ranks or [0]
    data = _pack(obj)
    head = bytearray(call.seal(data))
    gathered = bytearray(len(head) * len(members))
    _allgather(
        _memory_of(head), _memory_of(gathered), _core.DTYPE_UINT8, len(head), f"{name}.sz", number
    )
    heads = [bytes(gathered[at : at + _HEAD_BYTES]) for at in range(0, len(gathered), _HEAD_BYTES)]
    lengths = [call.length(rank, of_rank) for rank, of_rank in zip(members, heads)]
    gathered = bytearray(sum(lengths))
    memory = _memory_of(gathered)
    _allgather(_memory_of(data), memory, _core.DTYPE_UINT8, len(data), f"{name}.t", number)
    del memory  # so that the bytes can be cut
    objects, start = [], 0
    for rank, of_rank, length in zip(members, heads, lengths):
        piece = memoryview(gathered)[start : start + length]
        call.check(rank, of_rank, piece)
        objects.append(_unpack(piece))
        start += length
    return objects


# ---- Seals ------------------------------------------------------------------

#: What a call is for. No object of one kind of call passes for one of another.
_BROADCAST = 1
_ALLGATHER = 2

_HEAD_BYTES = 72


class _Call:
    """One call of one of the functions above, which all ranks of a set make."""

    def __init__(self, purpose: int, name: str, number: int) -> None:
        self._place = (purpose, name, number, _core.object_count(purpose, name, number))

    def seal(self, data: bytearray) -> bytes:
        """Return the head for an object of this rank."""
        memory = _memory_of(data)
        return _core.seal_object(*self._place, ctypes.addressof(memory), len(data))

    def length(self, sender: int, head: bytes) -> int:
        """Read how long the sender's object is, or raise if the head is not the sender's."""
        return _core.object_length(*self._place, sender, head)

    def check(self, sender: int, head: bytes, data: bytearray | memoryview) -> None:
        """Raise if these bytes are not what the sender has sealed."""
        memory = _memory_of(data)
        _core.open_object(*self._place, sender, head, ctypes.addressof(memory), len(data))


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


def _memory_of(data: bytearray | memoryview) -> Any:
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
