# SPDX-License-Identifier: Apache-2.0
"""How gradients of PyTorch are made smaller; what a compressor is: common/compression.py."""

from __future__ import annotations

from typing import Any

import torch

from rueda.common.compression import Compressor, NoneCompressor

__all__ = ["Compression", "Compressor", "BF16Compressor", "FP16Compressor", "NoneCompressor"]


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
