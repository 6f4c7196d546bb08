# SPDX-License-Identifier: Apache-2.0
"""How Horovod's launcher finds networks that all hosts share."""

from __future__ import annotations

from horovod.runner._gone import names

__getattr__ = names(
    __name__,
    "ruedarun finds the networks itself; --network-interfaces limits them",
    [
        "HorovodRunDriverService",
        "HorovodRunDriverClient",
        "get_local_interfaces",
        "get_common_interfaces",
    ],
)
