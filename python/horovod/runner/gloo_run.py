# SPDX-License-Identifier: Apache-2.0
"""Starting a command by ruedarun, as Horovod does it by Gloo."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from horovod.runner._gone import names
from horovod.runner.common.util.hosts import SlotInfo


def create_slot_env_vars(slot_info: SlotInfo) -> dict[str, str]:
    """The variables that tell a rank its place."""
    return {
        "HOROVOD_HOSTNAME": slot_info.hostname,
        "HOROVOD_RANK": str(slot_info.rank),
        "HOROVOD_SIZE": str(slot_info.size),
        "HOROVOD_LOCAL_RANK": str(slot_info.local_rank),
        "HOROVOD_LOCAL_SIZE": str(slot_info.local_size),
        "HOROVOD_CROSS_RANK": str(slot_info.cross_rank),
        "HOROVOD_CROSS_SIZE": str(slot_info.cross_size),
    }


def create_run_env_vars(
    server_ip: str, nics: Iterable[str], port: int, elastic: bool = False
) -> dict[str, str]:
    """The variables that tell ranks where they meet."""
    variables = {
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": server_ip,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_IFACE": next(iter(nics), ""),
        "NCCL_SOCKET_IFNAME": ",".join(nics),
    }
    if elastic:
        variables["HOROVOD_ELASTIC"] = "1"
    return variables


def get_run_command(
    command: str, server_ip: str, nics: Iterable[str], port: int, elastic: bool = False
) -> str:
    """The command with those variables before it, for a shell."""
    variables = create_run_env_vars(server_ip, list(nics), port, elastic)
    return " ".join([*(f"{name}={value}" for name, value in variables.items()), command])


def register_shutdown_event() -> threading.Event:
    """An event that is never set: ruedarun handles signals itself."""
    return threading.Event()


def gloo_run(
    settings: Any, nics: Iterable[str], env: Mapping[str, str], server_ip: str, command: str
) -> None:
    """Run a shell command on the hosts of the settings; RuntimeError if it fails there."""
    from .launch import _run_by_settings

    _run_by_settings(settings, nics, env, command, use_mpi=False)


__getattr__ = names(
    __name__,
    "horovodrun starts the ranks, also those of elastic jobs (--min-np)",
    ["MultiFile", "launch_gloo", "launch_gloo_elastic", "gloo_run_elastic"],
)
