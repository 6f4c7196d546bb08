# SPDX-License-Identifier: Apache-2.0
"""Submitting operations: every collective, without gradients.

Each function returns a handle. Tensors that are not laid out row after row are
copied first, and results in place are copied back in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any

import torch

from rueda import _core
from rueda.common import handles
from rueda.common.basics import Average, Sum
from rueda.common.operations import (
    REDUCTIONS,
    key_of,
    keys_of,
    reduction_of,
    rows_of_share,
    set_of,
    splits_of,
)
from rueda.common.process_sets import ProcessSet

from .memory import device_arguments, on_host
from .tensors import check, check_group, in_rows, new_like, not_negated, take

Tensor = torch.Tensor

_submit = _core.submit
_ALLREDUCE = _core.KIND_ALLREDUCE
_NO_DATA = _core.DTYPE_UINT8


def _add_in_place(
    cores: Sequence[int], tensors: Sequence[Tensor], copies: Sequence[Tensor], output: Any
) -> int:
    """Results are written to the tensors, or to copies of them."""
    if all(map(is_, tensors, copies)):
        return handles.add(cores, output, tensors)

    def finish() -> Any:
        for core in cores:
            _core.wait(core)
        with torch.no_grad():
            for tensor, copy in zip(tensors, copies):
                if copy is not tensor:
                    tensor.copy_(copy)
        return output

    return handles.add(cores, output, (tensors, copies), finish)


# ---- Allreduce --------------------------------------------------------------


def allreduce(
    tensor: Tensor,
    is_in_place: bool,
    name: str | None,
    op: int,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
) -> int:
    dtype = check(tensor, name)
    source = tensor.contiguous()
    shape = source.shape
    if 1 in shape or not shape:  # less to do for the others than in_rows()
        source = not_negated(source)
    target = source if is_in_place else new_like(source)
    memory = source.data_ptr()
    core = _submit(
        _ALLREDUCE, key_of("allreduce", name), set_of(process_set), dtype, memory,
        memory if is_in_place else target.data_ptr(), shape,
        reduction_of(op, process_set), 0, prescale, postscale, *device_arguments(source),
    )  # fmt: skip
    if not is_in_place:
        return handles.add((core,), target, source)
    if source is tensor:
        return handles.add((core,), tensor)
    return _add_in_place((core,), (tensor,), (source,), tensor)


def grouped_allreduce(
    tensors: Iterable[Tensor],
    is_in_place: bool,
    name: str | None,
    op: int,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
) -> int:
    tensors = tuple(tensors)
    number = set_of(process_set)
    reduction = reduction_of(op, process_set)
    dtypes = check_group(tensors, name)
    sources = [in_rows(tensor) for tensor in tensors]
    targets = sources if is_in_place else [new_like(source) for source in sources]
    keys = keys_of("grouped_allreduce", name, len(sources))
    cores = _core.submit_group(
        [
            (_ALLREDUCE, key, number, dtype, source.data_ptr(), target.data_ptr(),
             source.shape, reduction, 0, prescale, postscale, *device_arguments(source))
            for key, dtype, source, target in zip(keys, dtypes, sources, targets)
        ]
    )  # fmt: skip
    if is_in_place:
        return _add_in_place(cores, tensors, sources, tensors)
    return handles.add(cores, tuple(targets), sources)


# ---- Broadcast --------------------------------------------------------------


def broadcast(
    tensor: Tensor, is_in_place: bool, root_rank: int, name: str | None, process_set: ProcessSet
) -> int:
    dtype = check(tensor, name)
    source = in_rows(tensor)
    target = source if is_in_place else new_like(source)
    core = _submit(
        _core.KIND_BROADCAST, key_of("broadcast", name), set_of(process_set), dtype,
        source.data_ptr(), target.data_ptr(), source.shape, 0, root_rank, 1.0, 1.0,
        *device_arguments(source),
    )  # fmt: skip
    if is_in_place:
        return _add_in_place((core,), (tensor,), (source,), tensor)
    return handles.add((core,), target, source)


# ---- Results of unknown size ------------------------------------------------


def _gather_order(tensor: Tensor, key: str | None, number: int, room: Any) -> tuple[Any, ...]:
    """The arguments of submit() for an allgather."""
    return (
        _core.KIND_ALLGATHER, key, number, check(tensor), tensor.data_ptr(), 0, tensor.shape,
        0, 0, 1.0, 1.0, None, room,
    )  # fmt: skip


def _gathered(core: int, tensor: Tensor, room: Any) -> Tensor:
    rows, _, _ = _core.wait_for(core, 0)
    return take(room, check(tensor), tensor, rows)


# The library makes room for them on the host. What comes from a GPU goes there first.


def allgather(tensor: Tensor, name: str | None, process_set: ProcessSet) -> int:
    check(tensor, name)
    source = on_host(in_rows(tensor))
    room = _core.room()
    core = _submit(*_gather_order(source, key_of("allgather", name), set_of(process_set), room))
    device = tensor.device
    return handles.add(
        (core,), None, (source, room), lambda: _gathered(core, source, room).to(device)
    )


def grouped_allgather(tensors: Iterable[Tensor], name: str | None, process_set: ProcessSet) -> int:
    tensors = tuple(tensors)
    number = set_of(process_set)
    check_group(tensors, name)
    sources = [on_host(in_rows(tensor)) for tensor in tensors]
    rooms = [_core.room() for _ in sources]
    keys = keys_of("grouped_allgather", name, len(sources))
    cores = _core.submit_group(
        [
            _gather_order(source, key, number, room)
            for source, key, room in zip(sources, keys, rooms)
        ]
    )
    devices = [tensor.device for tensor in tensors]

    def finish() -> tuple[Tensor, ...]:
        results = map(_gathered, cores, sources, rooms)
        return tuple(result.to(device) for result, device in zip(results, devices))

    return handles.add(cores, None, (sources, rooms), finish)


def _check_splits(splits: Any) -> tuple[int, ...]:
    """One number of rows for each member."""
    if isinstance(splits, Tensor):
        if splits.dtype != torch.int32 or splits.dim() != 1:
            raise ValueError(
                f"splits is a tensor of type {splits.dtype} and {splits.dim()} dimensions; "
                "it should be of int32 and one"
            )
        splits = splits.tolist()
    return splits_of(splits)


def alltoall(tensor: Tensor, splits: Any, name: str | None, process_set: ProcessSet) -> int:
    dtype = check(tensor, name)
    number = set_of(process_set)
    source = on_host(in_rows(tensor))
    room = _core.room()
    home = tensor.device
    device = splits.device if isinstance(splits, Tensor) else "cpu"
    core = _submit(
        _core.KIND_ALLTOALL, key_of("alltoall", name), number, dtype, source.data_ptr(), 0,
        source.shape, 0, 0, 1.0, 1.0, None if splits is None else _check_splits(splits), room,
    )  # fmt: skip
    members = len(process_set.ranks or ())

    def finish() -> tuple[Tensor, Tensor]:
        rows, _, rows_from = _core.wait_for(core, members)
        received = torch.tensor(rows_from, dtype=torch.int32, device=device)
        return take(room, dtype, source, rows).to(home), received

    return handles.add((core,), None, (source, room), finish)


# ---- Reducescatter ----------------------------------------------------------


def _share_of(tensor: Tensor, process_set: ProcessSet) -> Tensor:
    """Make memory for my rows of the result."""
    if tensor.dim() == 0 or not process_set.included():
        return new_like(tensor)  # the library refuses it, with words
    rows = rows_of_share(tensor.shape[0], process_set)
    return torch.empty((rows, *tensor.shape[1:]), dtype=tensor.dtype, device=tensor.device)


def _scatter_order(
    tensor: Tensor,
    output: Tensor,
    key: str | None,
    op: int,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
) -> tuple[Any, ...]:
    """The arguments of submit() for a reducescatter."""
    if op not in (Average, Sum):
        raise NotImplementedError("reducescatter is done by Average or Sum")
    return (
        _core.KIND_REDUCE_SCATTER, key, set_of(process_set), check(tensor), tensor.data_ptr(),
        output.data_ptr(), tensor.shape, REDUCTIONS[op], 0, prescale, postscale,
        *device_arguments(tensor),
    )  # fmt: skip


def reducescatter(
    tensor: Tensor,
    name: str | None,
    op: int,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
) -> int:
    check(tensor, name)
    source = in_rows(tensor)
    output = _share_of(source, process_set)
    how = (op, prescale, postscale, process_set)
    core = _submit(*_scatter_order(source, output, key_of("reducescatter", name), *how))
    return handles.add((core,), output, source)


def grouped_reducescatter(
    tensors: Iterable[Tensor],
    name: str | None,
    op: int,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
) -> int:
    tensors = tuple(tensors)
    check_group(tensors, name)
    sources = [in_rows(tensor) for tensor in tensors]
    outputs = [_share_of(source, process_set) for source in sources]
    keys = keys_of("grouped_reducescatter", name, len(sources))
    how = (op, prescale, postscale, process_set)
    cores = _core.submit_group(
        [
            _scatter_order(source, output, key, *how)
            for source, output, key in zip(sources, outputs, keys)
        ]
    )
    return handles.add(cores, tuple(outputs), sources)


# ---- Without data -----------------------------------------------------------


def join() -> int:
    """The result is the rank that joined last."""
    core = _submit(_core.KIND_JOIN, None, 0, _NO_DATA, 0, 0, ())
    return handles.add((core,), None, None, lambda: _core.wait_for(core, 0)[1])


def barrier(process_set: ProcessSet) -> int:
    core = _submit(_core.KIND_BARRIER, None, set_of(process_set), _NO_DATA, 0, 0, ())
    return handles.add((core,), None)
