# SPDX-License-Identifier: Apache-2.0
"""The program that Horovod runs for a function."""

from __future__ import annotations

from horovod.runner._gone import names

__getattr__ = names(
    __name__,
    "horovod.run() starts python -m rueda.runner.task",
    [
        "main",
        "driver_addr",
        "run_func_server_port_str",
        "run_func_server_port",
    ],
)
