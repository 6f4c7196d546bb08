# SPDX-License-Identifier: Apache-2.0
"""Half-public names of Horovod's ``mpi_ops`` that scripts use, over our own operations.

``HorovodAllreduce.apply`` and the others take Horovod's arguments in its order
and can be differentiated, but the classes are not derived from ``autograd.Function``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Callable

import torch

from rueda.common import handles
from rueda.common.process_sets import ProcessSet, global_process_set

from . import mpi_ops

Tensor = torch.Tensor

_GLOBAL = global_process_set


class HorovodAllreduce:
    @staticmethod
    def apply(
        tensor: Tensor,
        average: bool | None = None,
        name: str | None = None,
        op: int | None = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        process_set: ProcessSet = _GLOBAL,
    ) -> Tensor:
        return mpi_ops.allreduce(
            tensor, average, name, op=op, prescale_factor=prescale_factor,
            postscale_factor=postscale_factor, process_set=process_set,
        )  # fmt: skip


class HorovodGroupedAllreduce:
    @staticmethod
    def apply(
        average: bool | None,
        name: str | None,
        op: int | None,
        prescale_factor: float,
        postscale_factor: float,
        process_set: ProcessSet,
        *tensors: Tensor,
    ) -> Any:
        return mpi_ops.grouped_allreduce(
            list(tensors), average, name, op=op, prescale_factor=prescale_factor,
            postscale_factor=postscale_factor, process_set=process_set,
        )  # fmt: skip


class HorovodAllgather:
    @staticmethod
    def apply(tensor: Tensor, name: str | None, process_set: ProcessSet = _GLOBAL) -> Tensor:
        return mpi_ops.allgather(tensor, name, process_set)


class HorovodGroupedAllgather:
    @staticmethod
    def apply(name: str | None, process_set: ProcessSet, *tensors: Tensor) -> Any:
        return mpi_ops.grouped_allgather(list(tensors), name, process_set)


class HorovodBroadcast:
    @staticmethod
    def apply(
        tensor: Tensor, root_rank: int, name: str | None, process_set: ProcessSet = _GLOBAL
    ) -> Tensor:
        return mpi_ops.broadcast(tensor, root_rank, name, process_set)


class HorovodAlltoall:
    @staticmethod
    def apply(
        tensor: Tensor, splits: Any, name: str | None, process_set: ProcessSet = _GLOBAL
    ) -> Any:
        return mpi_ops.alltoall(tensor, splits, name, process_set)


class HorovodReducescatter:
    @staticmethod
    def apply(
        tensor: Tensor,
        name: str | None,
        op: int,
        process_set: ProcessSet = _GLOBAL,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
    ) -> Tensor:
        return mpi_ops.reducescatter(
            tensor, name=name, op=op, process_set=process_set, prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
        )  # fmt: skip


class HorovodGroupedReducescatter:
    @staticmethod
    def apply(
        name: str | None,
        op: int,
        process_set: ProcessSet,
        prescale_factor: float,
        postscale_factor: float,
        *tensors: Tensor,
    ) -> Any:
        return mpi_ops.grouped_reducescatter(
            list(tensors), name=name, op=op, process_set=process_set,
            prescale_factor=prescale_factor, postscale_factor=postscale_factor,
        )  # fmt: skip


class _HandleMap(Mapping[int, Any]):
    """The operations in flight: ``handle in _handle_map``, and how many there are.

    The values are pairs as in Horovod, with the result last; inputs are not kept there.
    """

    def __getitem__(self, handle: int) -> Any:
        return None, handles.output_of(handle)

    def __iter__(self) -> Iterator[int]:
        return iter(handles.in_flight())

    def __len__(self) -> int:
        return len(handles.in_flight())


_handle_map = _HandleMap()

NAMES: dict[str, Callable[..., Any] | Any] = {
    "HorovodAllreduce": HorovodAllreduce,
    "HorovodGroupedAllreduce": HorovodGroupedAllreduce,
    "HorovodAllgather": HorovodAllgather,
    "HorovodGroupedAllgather": HorovodGroupedAllgather,
    "HorovodBroadcast": HorovodBroadcast,
    "HorovodAlltoall": HorovodAlltoall,
    "HorovodReducescatter": HorovodReducescatter,
    "HorovodGroupedReducescatter": HorovodGroupedReducescatter,
    "_handle_map": _handle_map,
}
