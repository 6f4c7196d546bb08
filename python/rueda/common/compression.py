# SPDX-License-Identifier: Apache-2.0
"""How gradients are made smaller before they are reduced; what all frameworks share.

A compressor is a class with two static methods; :class:`Compressor` is a base
for your own. What ``compress`` returns is reduced, so it has to be a dense
tensor whose sum means something, and of the same shape and type on all ranks.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Compressor", "NoneCompressor"]


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
