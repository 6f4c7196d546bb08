# SPDX-License-Identifier: Apache-2.0
"""A number for the values of a tensor, which ranks compare; see common/agreement.py."""

from __future__ import annotations

import torch

from rueda.common.agreement import digest_of_parts

__all__ = ["digest_of"]


def digest_of(tensor: torch.Tensor) -> int:
    """Hash type, shape and values, bit by bit: how they lie in memory does not count."""
    tensor = tensor.detach()
    rows = [part.cpu().contiguous().resolve_conj().resolve_neg() for part in _parts_of(tensor)]
    return digest_of_parts(
        f"{tensor.dtype} {tuple(tensor.shape)} {tensor.layout}",
        [(part.data_ptr(), part.numel() * part.element_size()) for part in rows],
    )


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
