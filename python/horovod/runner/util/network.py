# SPDX-License-Identifier: Apache-2.0
"""Addresses and ports of this host."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from typing import Any, Callable

_FIRST_PORT, _LAST_PORT = 1024, 65535


def resolve_host_address(host_name: str) -> str | None:
    """An IPv4 address of the name; None: it has none."""
    try:
        return socket.gethostbyname(host_name)
    except OSError:
        return None


def _towards(address: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        return probe.getsockname()[0]


def get_local_host_addresses() -> list[str]:
    """IPv4 addresses of this host that its name, localhost and the default route lead to."""
    found = {resolve_host_address("localhost"), resolve_host_address(socket.gethostname())}
    try:
        found.add(_towards("192.0.2.1"))
    except OSError:
        pass  # no route
    return sorted(address for address in found if address is not None)


def get_local_intfs(nic: str | None = None) -> set[str]:
    """Names of this host's interfaces, or the one that is asked for if it is there."""
    names = {name for _, name in socket.if_nameindex()}
    return names if nic is None else names & {nic}


def filter_local_addresses(all_host_names: Iterable[str]) -> list[str]:
    """Those of the hosts that are not this one."""
    mine = set(get_local_host_addresses())
    return [name for name in all_host_names if resolve_host_address(name) not in mine]


def find_port(server_factory: Callable[[tuple[str, int]], Any]) -> tuple[Any, int]:
    """A server at a free port, and the port. The factory gets an address."""
    error: OSError | None = None
    for port in random.sample(range(_FIRST_PORT, _LAST_PORT + 1), 1000):
        try:
            return server_factory(("", port)), port
        except OSError as cause:
            error = cause
    raise RuntimeError("Unable to find a port to bind to.") from error


def get_driver_ip(nics: Iterable[str]) -> str:
    """An address of this host, which is the launcher's."""
    for address in get_local_host_addresses():
        if not address.startswith("127."):
            return address
    return "127.0.0.1"
