# SPDX-License-Identifier: Apache-2.0
"""Where the ranks of an elastic job learn their places."""

from __future__ import annotations

from horovod.runner._gone import names

GET_RANK_AND_SIZE = "rank_and_size"
PUT_WORKER_ADDRESSES = "worker_addresses"

__getattr__ = names(
    __name__,
    "ranks learn their places from the store of ruedarun",
    [
        "create_rendezvous_handler",
    ],
)
