# SPDX-License-Identifier: Apache-2.0
"""A number for the values of a tensor, which ranks compare; see common/agreement.py."""

from __future__ import annotations

import torch

from rueda import _core

__all__ = ["digest_of"]


def digest_of(tensor: torch.Tensor) -> int:
    """Hash type, shape and values, bit by bit: how they lie in memory does not count."""
    tensor = tensor.detach()
    kind = f"{tensor.dtype} {tuple(tensor.shape)} {tensor.layout}".encode()
    digest = _of_bytes(torch.frombuffer(bytearray(kind), dtype=torch.uint8), 0)
    for part in _parts_of(tensor):
        digest = _of_bytes(part, digest)
    return digest


def _parts_of(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Dense tensors that make it up."""
    if tensor.is_quantized:
        return [tensor.int_repr()]
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce()
        return [tensor.indices(), tensor.values()]
    if tensor.layout is not torch.strided:
        return [tensor.to_dense()]
    return [tensor]


def _of_bytes(tensor: torch.Tensor, seed: int) -> int:
    rows = tensor.cpu().contiguous().resolve_conj().resolve_neg()
    return _core.digest(rows.data_ptr(), rows.numel() * rows.element_size(), seed)
