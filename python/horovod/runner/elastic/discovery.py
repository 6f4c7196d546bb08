# SPDX-License-Identifier: Apache-2.0
"""Where the hosts of an elastic job come from."""

from __future__ import annotations

import subprocess

from horovod.runner._gone import names

DEFAULT_COOLDOWN_LOWER_LIMIT_SECONDS = 1
DEFAULT_COOLDOWN_UPPER_LIMIT_SECONDS = 3600


class HostDiscovery:
    """A source of hosts and their slots."""

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        """The hosts that are there now, and how many ranks each may have."""
        raise NotImplementedError


class HostDiscoveryScript(HostDiscovery):
    """A program that prints ``host`` or ``host:slots``, a line each."""

    def __init__(self, discovery_script: str, slots: int) -> None:
        self._discovery_script = discovery_script
        self._default_slots = slots

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        done = subprocess.run(
            self._discovery_script, shell=True, check=False, stdout=subprocess.PIPE, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"the discovery script {self._discovery_script!r} ended with {done.returncode}"
            )
        hosts: dict[str, int] = {}
        for line in done.stdout.splitlines():
            host, _, slots = line.strip().partition(":")
            if host:
                hosts[host] = int(slots) if slots else self._default_slots
        return hosts


class FixedHosts(HostDiscovery):
    """Hosts that are given; set() replaces them."""

    def __init__(self, host_slots: dict[str, int]) -> None:
        self._host_slots = host_slots

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        return self._host_slots

    def set(self, host_slots: dict[str, int]) -> None:
        self._host_slots = host_slots


__getattr__ = names(
    __name__,
    "horovodrun keeps the state of hosts itself",
    ["HostState", "DiscoveredHosts", "HostManager"],
)
