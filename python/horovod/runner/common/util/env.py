# SPDX-License-Identifier: Apache-2.0
"""The identity of this process by its launcher's variables, without ``init()``."""

from __future__ import annotations

import os
import re

LOG_LEVEL_STR = ["FATAL", "ERROR", "WARNING", "INFO", "DEBUG", "TRACE"]

#: Variables that belong to a host or session, and are not copied to others.
IGNORE_REGEXES = {"BASH_FUNC_.*", "OLDPWD", ".*CUDA_VISIBLE_DEVICES"}

KUBEFLOW_MPI_EXEC = "/etc/mpi/kubexec.sh"

_NAMES = (
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)


def get_env_rank_and_size() -> tuple[int, int]:
    """Rank and size from the first launcher that set them; (0, 1) where none did.

    RuntimeError where one of the two is missing.
    """
    for names in _NAMES:
        values = [os.environ.get(name) for name in names]
        if None not in values:
            return int(values[0]), int(values[1])
        if values != [None, None]:
            there, missing = names if values[1] is None else names[::-1]
            raise RuntimeError(f"{there} is set, and {missing} is not: no rank can be found")
    return 0, 1


def is_exportable(v: str) -> bool:
    """Is the variable of use on another host?"""
    return not any(re.match(pattern, v) for pattern in IGNORE_REGEXES)


def is_kubeflow_mpi() -> bool:
    """Has Kubeflow's MPI operator started this process?"""
    return os.environ.get("OMPI_MCA_plm_rsh_agent") == KUBEFLOW_MPI_EXEC
