# SPDX-License-Identifier: Apache-2.0
"""The program by which Horovod checks hosts."""

from __future__ import annotations

from horovod.runner._gone import names

__getattr__ = names(
    __name__,
    "ruedarun checks the hosts itself; rueda doctor -H HOSTS shows the result",
    [
        "index",
        "num_hosts",
        "driver_addresses",
        "settings",
    ],
)
