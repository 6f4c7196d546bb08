# SPDX-License-Identifier: Apache-2.0
"""Rueda for PyTorch; ``import horovod.torch`` is this module, too."""

from __future__ import annotations

from rueda.common.frameworks import need

need("torch", "PyTorch", "torch")

# ruff: noqa: E402 -- only now
from rueda.common.util import check_extension  # noqa: F401 -- scripts import it from here

from . import elastic, mpi_ops
from .compression import Compression
from .functions import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from .mpi_ops import *  # noqa: F403
from .optimizer import DistributedOptimizer
from .sync_batch_norm import SyncBatchNorm

__all__ = [
    *mpi_ops.__all__,
    "Compression",
    "DistributedOptimizer",
    "SyncBatchNorm",
    "allgather_object",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "elastic",
]


def __dir__() -> list[str]:
    """What scripts use; files of this folder, which Python adds, are not part of it."""
    return sorted(__all__)
