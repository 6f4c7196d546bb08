# SPDX-License-Identifier: Apache-2.0
"""From a tensor of torch's to what the library wants to know of it, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import dlpack

from rueda import _core

from .memory import is_reachable

__all__ = [
    "check", "check_group", "in_rows", "new_like", "new_sparse", "not_negated", "refuse", "take",
]  # fmt: skip

_NAMES = ("uint8", "int8", "uint16", "int16", "int32", "int64",
          "float16", "float32", "float64", "bool", "bfloat16")  # fmt: skip

#: The library's number of each type. Older versions of torch have no uint16.
DTYPES: dict[torch.dtype, int] = {
    getattr(torch, name): getattr(_core, f"DTYPE_{name.upper()}")
    for name in _NAMES
    if hasattr(torch, name)
}

_core.learn(torch.Tensor)
_strided = torch.strided


def check(tensor: torch.Tensor, name: str | None = None) -> int:
    """Return the library's number of its type, or raise :class:`ValueError`."""
    try:
        dtype = DTYPES[tensor.dtype]
        if tensor.layout is _strided and is_reachable(tensor):
            return dtype
    except (AttributeError, KeyError):
        pass
    raise refuse(tensor, name)


def check_group(tensors: Sequence[torch.Tensor], name: str | None = None) -> list[int]:
    """The same for a group, whose tensors run together and so are on one device."""
    dtypes = [check(tensor, name) for tensor in tensors]
    devices = [tensor.device for tensor in tensors]
    for i, device in enumerate(devices):
        if device != devices[0]:
            raise RuntimeError(
                f"rank {_core.rank()}: {'a group' if name is None else repr(name)} has tensors on "
                f"{devices[0]} (the first) and on {device} (number {i}); a group is on one "
                "device, so copy some of them, or make two groups"
            )
    return dtypes


def refuse(tensor: Any, name: str | None) -> ValueError:
    """Why this cannot be reduced, sent or received, and what to do."""
    who = f"rank {_core.rank()}: " if _core.is_initialized() else ""
    who += "" if name is None else f'"{name}": '
    if not isinstance(tensor, torch.Tensor):
        return ValueError(f"{who}a tensor is expected, not {type(tensor).__name__}")
    what = f"{who}a tensor of shape {tuple(tensor.shape)} and type {tensor.dtype} "
    if tensor.dtype.is_complex:
        return ValueError(f"{what}is not supported; take torch.view_as_real() of it")
    if tensor.dtype not in DTYPES:
        return ValueError(f"{what}is not supported; convert it, for example by .float()")
    if tensor.layout is not torch.strided:
        return ValueError(
            f"{what}has the layout {tensor.layout}, which is not supported; use .to_dense(), "
            "or sparse_allreduce_async()"
        )
    return ValueError(
        f"{what}is on {tensor.device}; only tensors on the CPU and on GPUs with CUDA are "
        "supported, so copy it there by .cpu() and back afterwards"
    )


def in_rows(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers, row after row in memory: the tensor itself, or a copy."""
    rows = tensor.contiguous()
    return rows if rows.numel() != 1 else not_negated(rows)


def not_negated(tensor: torch.Tensor) -> torch.Tensor:
    """The same as it is in memory: imaginary parts may be views that are negated when read.

    Those have gaps, so contiguous() makes a copy, and negates it, but for single numbers.
    """
    return tensor.resolve_neg() if tensor.is_neg() else tensor


def new_like(tensor: torch.Tensor) -> torch.Tensor:
    """Memory for as many numbers, row after row."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)


# Since 2.0 torch checks indices only where that is asked for, and warns else.
_CHECKED = (
    {"check_invariants": True} if hasattr(torch.sparse, "check_sparse_tensor_invariants") else {}
)


def new_sparse(indices: torch.Tensor, values: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """A sparse tensor; an exception if the indices are not those of this shape."""
    return torch.sparse_coo_tensor(indices, values, shape, **_CHECKED)


def take(room: Any, dtype: int, tensor: torch.Tensor, rows: int) -> torch.Tensor:
    """The result that the library made, of this many rows like those of the tensor."""
    capsule = _core.take(room, dtype, tuple(tensor.shape))
    if capsule is None:
        return torch.empty((rows, *tensor.shape[1:]), dtype=tensor.dtype)
    result = dlpack.from_dlpack(capsule)
    return result.view(torch.bool) if tensor.dtype is torch.bool else result
