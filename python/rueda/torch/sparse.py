# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors: their entries are gathered, and add up where they meet."""

from __future__ import annotations

from typing import Callable

import torch

from rueda.common.basics import Average, Sum
from rueda.common.handles import synchronize
from rueda.common.process_sets import ProcessSet, global_process_set

from . import submit
from .tensors import new_sparse

Tensor = torch.Tensor


def sparse_allreduce_async(
    tensor: Tensor, name: str, op: int, process_set: ProcessSet = global_process_set
) -> Callable[[], Tensor]:
    """Begin to reduce a sparse tensor over all ranks, by Average or Sum.

    Returns a function that waits for the result and returns it, with entries
    that may be there several times.
    """
    if not tensor.is_sparse:
        raise ValueError("sparse_allreduce_async takes sparse tensors; use allreduce_async")
    if op not in (Average, Sum):
        raise ValueError("sparse tensors are reduced by Average or Sum")
    indices = submit.allgather(tensor._indices().transpose(0, 1), f"{name}.indices", process_set)
    values = submit.allgather(tensor._values(), f"{name}.values", process_set)

    def finish() -> Tensor:
        all_values = synchronize(values)
        all_indices = synchronize(indices).transpose(0, 1)
        if op == Average:
            all_values = all_values / process_set.size()
        return new_sparse(all_indices, all_values, tensor.size())

    return finish
