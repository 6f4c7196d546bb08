# SPDX-License-Identifier: Apache-2.0
"""Where a tensor is: on the CPU, or on a GPU, with the stream that writes it.

Nothing of CUDA is touched for tensors on the CPU.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["device_arguments", "is_reachable", "on_host"]

_ON_HOST: tuple[Any, ...] = ()


def is_reachable(tensor: torch.Tensor) -> bool:
    """Can the library read and write it?"""
    return tensor.is_cpu or tensor.is_cuda


def device_arguments(tensor: torch.Tensor) -> tuple[Any, ...]:
    """The arguments of ``_core.submit`` behind the postscale.

    Taken when the tensor is submitted: what the current stream has been given by then is
    what the library waits for. The result is complete, for every stream, when the operation
    has ended.
    """
    if not tensor.is_cuda:
        return _ON_HOST
    device = tensor.device
    stream = torch.cuda.current_stream(device).cuda_stream
    return (None, None, 0, 0, device.index, stream)


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy in the memory of the host, for which the caller waits."""
    return tensor.cpu() if tensor.is_cuda else tensor
