# SPDX-License-Identifier: Apache-2.0
"""Who and where: what every framework's module offers."""

from __future__ import annotations

from typing import Any

from rueda.common.basics import basics as _basics
from rueda.common.handles import forget_all as _forget_all

__all__ = [
    "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "gloo_built",
    "gloo_enabled", "init", "is_homogeneous", "is_initialized", "is_master", "local_rank",
    "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built", "rank",
    "rocm_built", "shutdown", "size", "start_timeline", "stop_timeline",
]  # fmt: skip


def init(comm: Any = None, process_sets: Any = None) -> None:
    if not _basics.is_initialized():
        _forget_all()
    _basics.init(comm, process_sets)


init.__doc__ = _basics.init.__doc__


def shutdown() -> None:
    _basics.shutdown()
    _forget_all()


shutdown.__doc__ = _basics.shutdown.__doc__

size = _basics.size
local_size = _basics.local_size
cross_size = _basics.cross_size
rank = _basics.rank
local_rank = _basics.local_rank
cross_rank = _basics.cross_rank
is_homogeneous = _basics.is_homogeneous
is_initialized = _basics.is_initialized
is_master = _basics.is_master
start_timeline = _basics.start_timeline
stop_timeline = _basics.stop_timeline
mpi_threads_supported = _basics.mpi_threads_supported
mpi_enabled = _basics.mpi_enabled
mpi_built = _basics.mpi_built
gloo_enabled = _basics.gloo_enabled
gloo_built = _basics.gloo_built
nccl_built = _basics.nccl_built
ddl_built = _basics.ddl_built
ccl_built = _basics.ccl_built
cuda_built = _basics.cuda_built
rocm_built = _basics.rocm_built
