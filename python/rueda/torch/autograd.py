# SPDX-License-Identifier: Apache-2.0
"""Gradients of collectives, as Horovod has them.

They are computed by the same functions, so that they can be differentiated again
(``create_graph=True``, as for a penalty on gradients).
"""

from __future__ import annotations

from typing import Any

import torch

from rueda.common.basics import Average, Sum
from rueda.common.handles import synchronize
from rueda.common.process_sets import ProcessSet

from . import submit

Tensor = torch.Tensor
Gradients = tuple[Any, ...]


def average(tensor: Tensor, process_set: ProcessSet) -> Tensor:
    return Allreduce.apply(tensor, None, Average, 1.0, 1.0, process_set)


class Allreduce(torch.autograd.Function):
    """The gradient is reduced as the tensor was."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, name: str | None, *how: Any) -> Tensor:
        ctx.how = how
        return synchronize(submit.allreduce(tensor, False, name, *how))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Gradients:
        return (Allreduce.apply(gradient, None, *ctx.how), None) + (None,) * len(ctx.how)


class GroupedAllreduce(torch.autograd.Function):
    """Takes the name, the rest of the arguments, and the tensors."""

    @staticmethod
    def forward(ctx: Any, name: str | None, how: tuple[Any, ...], *tensors: Tensor) -> Any:
        ctx.how = how
        return synchronize(submit.grouped_allreduce(tensors, False, name, *how))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        return (None, None, *GroupedAllreduce.apply(None, ctx.how, *gradients))


def _own_rows(gradient: Tensor, rows: int, process_set: ProcessSet) -> Tensor:
    """My slice of the averaged gradient of what was gathered."""
    averaged = average(gradient, process_set)
    counts = synchronize(submit.allgather(torch.tensor([rows]), None, process_set))
    first = int(counts[: process_set.rank()].sum())
    return averaged.narrow(0, first, rows)


class Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, name: str | None, process_set: ProcessSet) -> Tensor:
        gathered = synchronize(submit.allgather(tensor, name, process_set))
        ctx.rows, ctx.process_set = tensor.shape[0], process_set
        return gathered

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Gradients:
        return _own_rows(gradient, ctx.rows, ctx.process_set), None, None


class GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: str | None, process_set: ProcessSet, *tensors: Tensor) -> Any:
        gathered = synchronize(submit.grouped_allgather(tensors, name, process_set))
        ctx.rows = [tensor.shape[0] for tensor in tensors]
        ctx.process_set = process_set
        return gathered

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        own = [
            _own_rows(gradient, rows, ctx.process_set)
            for gradient, rows in zip(gradients, ctx.rows)
        ]
        return (None, None, *own)


class Broadcast(torch.autograd.Function):
    """The averaged gradient belongs to the root; the others' input had no effect."""

    @staticmethod
    def forward(
        ctx: Any, tensor: Tensor, root_rank: int, name: str | None, process_set: ProcessSet
    ) -> Tensor:
        ctx.root_rank, ctx.process_set = root_rank, process_set
        return synchronize(submit.broadcast(tensor, False, root_rank, name, process_set))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Gradients:
        averaged = average(gradient, ctx.process_set)
        if submit._core.rank() != ctx.root_rank:
            averaged *= 0
        return averaged, None, None, None


class Alltoall(torch.autograd.Function):
    """Rows of the gradient go back to where the rows came from."""

    @staticmethod
    def forward(
        ctx: Any, tensor: Tensor, splits: Any, name: str | None, process_set: ProcessSet
    ) -> Any:
        output, received = synchronize(submit.alltoall(tensor, splits, name, process_set))
        ctx.received, ctx.rows, ctx.process_set = received, tensor.shape[0], process_set
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> Gradients:
        own, _ = Alltoall.apply(gradient, ctx.received, None, ctx.process_set)
        missing = ctx.rows - own.shape[0]  # rows that were sent to no rank
        if missing > 0:
            own = torch.cat([own, own.new_zeros((missing, *own.shape[1:]))])
        return own, None, None, None


def _gather_back(gradient: Tensor, how: tuple[Any, ...]) -> Tensor:
    op, prescale, postscale, process_set = how
    factor = prescale * postscale * (process_set.size() if op == Sum else 1)
    return Allgather.apply(gradient * factor, None, process_set)


class Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, name: str | None, *how: Any) -> Tensor:
        ctx.how = how
        return synchronize(submit.reducescatter(tensor, name, *how))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Gradients:
        return (_gather_back(gradient, ctx.how), None) + (None,) * len(ctx.how)


class GroupedReducescatter(torch.autograd.Function):
    """Takes the name, the rest of the arguments, and the tensors."""

    @staticmethod
    def forward(ctx: Any, name: str | None, how: tuple[Any, ...], *tensors: Tensor) -> Any:
        ctx.how = how
        return synchronize(submit.grouped_reducescatter(tensors, name, *how))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        return (None, None, *[_gather_back(gradient, ctx.how) for gradient in gradients])
