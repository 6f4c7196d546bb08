# SPDX-License-Identifier: Apache-2.0
"""What ranks of an elastic job hear of changes."""

from __future__ import annotations

from rueda.common.elastic import HostUpdateResult, NotificationManager

from horovod.runner._gone import names

__all__ = ["HostUpdateResult", "WorkerNotificationManager"]

HOROVOD_GLOO_RENDEZVOUS_ADDR = "HOROVOD_GLOO_RENDEZVOUS_ADDR"
HOROVOD_GLOO_RENDEZVOUS_PORT = "HOROVOD_GLOO_RENDEZVOUS_PORT"
HOROVOD_GLOO_IFACE = "HOROVOD_GLOO_IFACE"
HOROVOD_HOSTNAME = "HOROVOD_HOSTNAME"
HOROVOD_LOCAL_RANK = "HOROVOD_LOCAL_RANK"

WorkerNotificationManager = NotificationManager

__getattr__ = names(
    __name__,
    "ranks hear of changes through the store of ruedarun",
    ["HostsUpdatedRequest", "WorkerNotificationService", "WorkerNotificationClient"],
)
