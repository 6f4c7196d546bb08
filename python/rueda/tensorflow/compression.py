# SPDX-License-Identifier: Apache-2.0
"""How gradients are made smaller before they are reduced.

A compressor is a class with two static methods; :class:`Compressor` is a base
for your own. What ``compress`` returns is reduced, so it has to be a dense
tensor whose sum means something, and of the same shape and type on all ranks.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

__all__ = ["BF16Compressor", "Compression", "Compressor", "FP16Compressor", "NoneCompressor"]


class Compressor:
    """What a compressor has to have."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Return what is to be reduced, and what ``decompress`` has to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Return the reduced tensor as the caller of ``compress`` knows it."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Everything as it is."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tensor


class _Narrow(Compressor):
    """Floating-point numbers in a type of 16 bits."""

    _dtype: Any = None

    @classmethod
    def compress(cls, tensor: Any) -> tuple[Any, Any]:
        dtype = tensor.dtype
        return (tf.cast(tensor, cls._dtype) if dtype.is_floating else tensor), dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tf.cast(tensor, ctx) if ctx.is_floating else tensor


class FP16Compressor(_Narrow):
    """Floating-point numbers as float16: half the bytes, sums up to 65,504."""

    _dtype = tf.float16


class BF16Compressor(_Narrow):
    """Floating-point numbers as bfloat16: half the bytes, the range of float32."""

    _dtype = tf.bfloat16


class Compression:
    """The compressors that come with Rueda."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
