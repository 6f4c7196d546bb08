# SPDX-License-Identifier: Apache-2.0
"""Rueda for Keras: Keras 3 on TensorFlow, PyTorch and JAX, and Keras 2.

``import horovod.keras`` is this module, too.
"""

from __future__ import annotations

from rueda.common.objects import allgather_object, broadcast_object

from . import basics, callbacks, elastic
from .basics import *  # noqa: F403
from .compression import Compression
from .functions import (
    allgather,
    allreduce,
    broadcast,
    broadcast_global_variables,
    broadcast_variables,
    load_model,
    reducescatter,
)
from .optimizer import DistributedOptimizer, PartialDistributedOptimizer

__all__ = [
    *basics.__all__,
    "Compression",
    "DistributedOptimizer",
    "PartialDistributedOptimizer",
    "allgather",
    "allgather_object",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "broadcast_object",
    "broadcast_variables",
    "callbacks",
    "elastic",
    "load_model",
    "reducescatter",
]
