# SPDX-License-Identifier: Apache-2.0
"""Rueda for PyTorch; ``import horovod.torch`` is this module, too."""

from __future__ import annotations

from . import mpi_ops
from .mpi_ops import *  # noqa: F403

__all__ = list(mpi_ops.__all__)
