# SPDX-License-Identifier: Apache-2.0
"""How gradients are made smaller before they are reduced.

A compressor is a class with two static methods; :class:`Compressor` is a base
for your own. What ``compress`` returns is reduced, so it has to be a dense
tensor whose sum means something, and of the same shape and type on all ranks.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["Compression", "Compressor", "BF16Compressor", "FP16Compressor", "NoneCompressor"]


class Compressor:
    """What a compressor has to have."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Return what is to be reduced, and what ``decompress`` has to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """Return the reduced tensor as the caller of ``compress`` knows it."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Everything as it is."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor


def _narrow(tensor: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, Any]:
    return (tensor.to(dtype) if tensor.dtype.is_floating_point else tensor), tensor.dtype


def _widen(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
    return tensor.to(ctx) if ctx.is_floating_point else tensor


class FP16Compressor(Compressor):
    """Floating-point numbers as float16: half the bytes, sums up to 65,504."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return _narrow(tensor, torch.float16)

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return _widen(tensor, ctx)


class BF16Compressor(Compressor):
    """Floating-point numbers as bfloat16: half the bytes, the range of float32."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return _narrow(tensor, torch.bfloat16)

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return _widen(tensor, ctx)


class Compression:
    """The compressors that come with Rueda."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
