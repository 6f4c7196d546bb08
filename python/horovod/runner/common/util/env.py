# SPDX-License-Identifier: Apache-2.0
"""The identity of this process by its launcher's variables, without ``init()``."""

from __future__ import annotations

import os

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
