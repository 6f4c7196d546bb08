# SPDX-License-Identifier: Apache-2.0
"""What has become of the ranks of an elastic job."""

from __future__ import annotations

from horovod.runner._gone import names

READY = "READY"
SUCCESS = "SUCCESS"
FAILURE = "FAILURE"

__getattr__ = names(
    __name__,
    "horovodrun keeps that itself",
    [
        "WorkerStateRegistry",
    ],
)
