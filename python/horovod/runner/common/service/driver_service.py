# SPDX-License-Identifier: Apache-2.0
"""How Horovod's launcher talks to the hosts."""

from __future__ import annotations

from horovod.runner._gone import names

__getattr__ = names(
    __name__,
    "the agents of ruedarun do its work; start the job by horovodrun or horovod.run()",
    [
        "RegisterTaskToTaskAddressesRequest",
        "AllTaskAddressesRequest",
        "AllTaskAddressesResponse",
        "BasicDriverService",
        "RegisterTaskRequest",
        "BasicDriverClient",
    ],
)
