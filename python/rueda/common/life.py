# SPDX-License-Identifier: Apache-2.0
"""What the modules of all frameworks offer by the same names: life, numbers, reductions, sets."""

from __future__ import annotations

from typing import Any

from .basics import Adasum, Average, Max, Min, Product, Sum
from .basics import basics as _basics
from .exceptions import HorovodInternalError
from .handles import forget_all as _forget_all
from .process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set

__all__ = [
    "Adasum", "Average", "HorovodInternalError", "Max", "Min", "ProcessSet", "Product", "Sum",
    "add_process_set", "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built",
    "global_process_set", "gloo_built", "gloo_enabled", "init", "is_homogeneous",
    "is_initialized", "is_master", "local_rank", "local_size", "mpi_built", "mpi_enabled",
    "mpi_threads_supported", "nccl_built", "rank", "remove_process_set", "rocm_built",
    "shutdown", "size", "start_timeline", "stop_timeline",
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

is_initialized = _basics.is_initialized
start_timeline = _basics.start_timeline
stop_timeline = _basics.stop_timeline
size = _basics.size
local_size = _basics.local_size
cross_size = _basics.cross_size
rank = _basics.rank
local_rank = _basics.local_rank
cross_rank = _basics.cross_rank
is_homogeneous = _basics.is_homogeneous
is_master = _basics.is_master
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
