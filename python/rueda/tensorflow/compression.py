# SPDX-License-Identifier: Apache-2.0
"""How gradients of TensorFlow are made smaller; what a compressor is: common/compression.py."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rueda.common.compression import Compressor, NoneCompressor

__all__ = ["BF16Compressor", "Compression", "Compressor", "FP16Compressor", "NoneCompressor"]


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
