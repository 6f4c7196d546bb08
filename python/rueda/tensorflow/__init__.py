# SPDX-License-Identifier: Apache-2.0
"""Rueda for TensorFlow; ``import horovod.tensorflow`` is this module, too."""

from __future__ import annotations

import importlib
from typing import Any

from rueda.common.frameworks import need

need("tensorflow", "TensorFlow", "tensorflow")

# ruff: noqa: E402 -- only now
from . import elastic, mpi_ops, util
from .aggregation import LocalGradientAggregationHelper
from .cluster import tf_config
from .collectives import allreduce, grouped_allreduce, grouped_reducescatter, reducescatter
from .compression import Compression
from .functions import (
    BroadcastGlobalVariablesHook,
    allgather_object,
    broadcast_global_variables,
    broadcast_object,
    broadcast_object_fn,
    broadcast_variables,
)
from .library import is_eager as _executing_eagerly  # noqa: F401 -- Horovod's name
from .mpi_ops import *  # noqa: F403
from .optimizer import DistributedOptimizer
from .tape import DistributedGradientTape, PartialDistributedGradientTape
from .util import refs_to_vars, vars_to_refs

__all__ = [
    *mpi_ops.__all__,
    "BroadcastGlobalVariablesHook",
    "Compression",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "LocalGradientAggregationHelper",
    "PartialDistributedGradientTape",
    "Strategy",  # noqa: F405 -- by __getattr__(), as the next
    "SyncBatchNormalization",  # noqa: F405
    "allgather_object",
    "allreduce",
    "broadcast_global_variables",
    "broadcast_object",
    "broadcast_object_fn",
    "broadcast_variables",
    "elastic",
    "grouped_allreduce",
    "grouped_reducescatter",
    "reducescatter",
    "refs_to_vars",
    "tf_config",
    "util",
    "vars_to_refs",
]


#: Loaded by those who use them: one needs Keras, the other what TensorFlow may change.
_LATE = {"Strategy": "strategy", "SyncBatchNormalization": "sync_batch_norm"}


def __getattr__(name: str) -> Any:
    """What not every program uses is loaded when it is asked for."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_LATE[name]}", __name__), name)
