# SPDX-License-Identifier: Apache-2.0
"""The part of the launcher that follows an elastic job."""

from __future__ import annotations

from horovod.runner._gone import names

DISCOVER_HOSTS_FREQUENCY_SECS = 1.0
ELASTIC_TIMEOUT_SECS = 600

__getattr__ = names(
    __name__,
    "horovodrun --min-np, or with --host-discovery-script, runs elastic jobs",
    [
        "Results",
        "ResultsRecorder",
        "ElasticDriver",
    ],
)
