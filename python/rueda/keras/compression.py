# SPDX-License-Identifier: Apache-2.0
"""How gradients are made smaller on every back end; see common/compression.py."""

from __future__ import annotations

from typing import Any

from rueda.common.compression import Compressor, NoneCompressor

from .flavor import IS_LEGACY, keras

__all__ = ["BF16Compressor", "Compression", "Compressor", "FP16Compressor", "NoneCompressor"]


def _cast(tensor: Any, dtype: Any) -> Any:
    if IS_LEGACY:
        import tensorflow

        return tensorflow.cast(tensor, dtype)
    return keras.ops.cast(tensor, dtype)


def _type_of(tensor: Any) -> str:
    """Return a name such as "float32"."""
    if IS_LEGACY:
        return str(tensor.dtype.name)
    return str(keras.backend.standardize_dtype(tensor.dtype))


class _Narrower(Compressor):
    """Floating-point numbers as those of a smaller type."""

    _to = ""

    @classmethod
    def compress(cls, tensor: Any) -> tuple[Any, Any]:
        before = _type_of(tensor)
        is_wider = before in ("float32", "float64")
        return (_cast(tensor, cls._to), before) if is_wider else (tensor, None)

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tensor if ctx is None else _cast(tensor, ctx)


class FP16Compressor(_Narrower):
    """As float16: half the bytes, sums up to 65,504."""

    _to = "float16"


class BF16Compressor(_Narrower):
    """As bfloat16: half the bytes, the range of float32."""

    _to = "bfloat16"


class Compression:
    """The compressors that come with Rueda."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
