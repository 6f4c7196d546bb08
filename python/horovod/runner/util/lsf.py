# SPDX-License-Identifier: Apache-2.0
"""Jobs of LSF."""

from __future__ import annotations

import os


class LSFUtils:
    """ruedarun reads the hosts of an LSF job itself; this says whether it would."""

    @staticmethod
    def using_lsf() -> bool:
        return "LSB_JOBID" in os.environ
