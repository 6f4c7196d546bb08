# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation over the batches of all ranks.

Forward, every rank tells how many values of each channel it has, their mean and
their squared distance from it: one allgather. These are put together as Chan,
Golub and LeVeque do (1979), which loses no digits where the mean is large.
Backward, two sums of each channel are added up over the ranks: one allreduce.
The result is what one process would have with all batches in one.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 -- the usual name
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from rueda.common.process_sets import ProcessSet, global_process_set

from . import mpi_ops

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(_BatchNorm):
    """Like ``torch.nn.BatchNorm1d`` and its kin, over the batches of all ranks.

    Takes inputs of 2 dimensions or more, of which the second is that of the
    channels. The batches may have different sizes. Gradients of weight and bias
    are those of this rank's batch; a distributed optimizer reduces them. Every
    rank has to come by: see ``join`` for what that means when data end.
    """

    # Of the class, so that copies of a module do not have one of their own.
    process_set = global_process_set

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        if process_set is not global_process_set:
            self.process_set = process_set

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(
                f"SyncBatchNorm takes inputs of at least 2 dimensions, not {input.dim()}"
            )
        # One channel would be spread over all of them.
        has_channels = self.weight is not None or self.running_mean is not None
        if has_channels and input.shape[1] != self.num_features:
            raise ValueError(
                f"this SyncBatchNorm is for {self.num_features} channels; the input, of shape "
                f"{tuple(input.shape)}, has {input.shape[1]}"
            )

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        takes_batch = self.training or self.running_mean is None
        momentum = self._count_batch() if self.training else 0.0
        if takes_batch and (self.process_set.size() or 1) > 1:
            return self._normalize_over_ranks(input, momentum)
        return F.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            takes_batch,
            momentum,
            self.eps,
        )

    def _count_batch(self) -> float:
        """One more; returns what it weighs in the running statistics."""
        if self.num_batches_tracked is None:
            return self.momentum or 0.0
        self.num_batches_tracked.add_(1)
        if self.momentum is None:  # the plain mean of all
            return 1.0 / float(self.num_batches_tracked)
        return self.momentum

    def _normalize_over_ranks(self, input: torch.Tensor, momentum: float) -> torch.Tensor:
        output, mean, var, count = _Normalize.apply(
            input, self.weight, self.bias, self.eps, self.process_set
        )
        if self.training and self.running_mean is not None and count.any():
            with torch.no_grad():
                unbiased = var * (count / (count - 1).clamp(min=1))
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), momentum)
        return output


def _along_channels(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return values.reshape(1, -1, *[1] * (like.dim() - 2))


def _statistics(x: torch.Tensor) -> torch.Tensor:
    """Number, mean and squared distance from it, of each channel, in a row."""
    others = [dim for dim in range(x.dim()) if dim != 1]
    channels = x.shape[1]
    count = x.numel() // channels if channels else 0
    if count == 0:
        return torch.zeros(3, channels, dtype=x.dtype, device=x.device)
    mean = x.mean(others)
    distance = (x - _along_channels(mean, x)).square().sum(others)
    return torch.stack([torch.full_like(mean, count), mean, distance])


def _combined(parts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Number, mean and variance of all, from those of each rank: [ranks, 3, channels]."""
    counts, means, distances = parts.unbind(1)
    count = counts.sum(0)
    mean = (counts * means).sum(0) / count
    distance = distances.sum(0) + (counts * (means - mean).square()).sum(0)
    return count, mean, distance / count


class _Normalize(torch.autograd.Function):
    """Normalise by the statistics of all ranks; returns those, too."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        input: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        eps: float,
        process_set: ProcessSet,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        x = _wide(input)
        parts = mpi_ops.allgather(
            _statistics(x).unsqueeze(0), "sync_batch_norm.statistics", process_set=process_set
        )
        count, mean, var = _combined(parts)
        scale = (var + eps).rsqrt()
        ctx.save_for_backward(input, weight, mean, scale, count)
        ctx.process_set = process_set
        normal = (x - _along_channels(mean, x)) * _along_channels(scale, x)
        if weight is not None:
            normal = normal * _along_channels(weight.to(x.dtype), x)
        if bias is not None:
            normal = normal + _along_channels(bias.to(x.dtype), x)
        ctx.mark_non_differentiable(mean, var, count)
        return normal.to(input.dtype), mean, var, count

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # type: ignore[override]
        input, weight, mean, scale, count = ctx.saved_tensors
        dy = _wide(grads[0])
        x = _wide(input)
        others = [dim for dim in range(x.dim()) if dim != 1]
        normal = (x - _along_channels(mean, x)) * _along_channels(scale, x)
        sums = torch.stack([dy.sum(others), (dy * normal).sum(others)])
        grad_bias, grad_weight = sums.clone()
        grad_input = None
        if ctx.needs_input_grad[0]:
            # Every value moves mean and variance a little, on all ranks.
            mpi_ops.allreduce_(
                sums,
                name="sync_batch_norm.sums",
                op=mpi_ops.Sum,
                process_set=ctx.process_set,
            )
            of_mean, of_var = (_along_channels(one / count, x) for one in sums)
            steep = scale if weight is None else scale * weight.to(scale.dtype)
            grad_input = (dy - of_mean - normal * of_var) * _along_channels(steep, x)
            grad_input = grad_input.to(input.dtype)
        if weight is None:
            return grad_input, None, None, None, None
        return grad_input, grad_weight.to(weight.dtype), grad_bias.to(weight.dtype), None, None


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """Halves are summed as float32."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
