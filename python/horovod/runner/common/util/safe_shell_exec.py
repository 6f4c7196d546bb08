# SPDX-License-Identifier: Apache-2.0
"""Commands whose children end with them."""

from __future__ import annotations

from horovod.runner._gone import names

#: From SIGTERM to SIGKILL, as ``--grace`` of ruedarun.
GRACEFUL_TERMINATION_TIME_S = 5

__getattr__ = names(
    __name__,
    "subprocess starts commands, and ruedarun ends what its ranks leave behind",
    [
        "terminate_executor_shell_and_children",
        "prefix_connection",
        "execute",
    ],
)
