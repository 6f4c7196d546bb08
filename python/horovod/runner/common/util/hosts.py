# SPDX-License-Identifier: Apache-2.0
"""Hosts, their slots, and the places of ranks on them, numbered as ruedarun numbers them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


class HostInfo:
    """A host and how many ranks it may have."""

    def __init__(self, hostname: str, slots: int) -> None:
        self.hostname = hostname
        self.slots = slots

    @staticmethod
    def from_string(host_string: str) -> HostInfo:
        """From ``"host:slots"``."""
        name, slots = host_string.strip().split(":")
        return HostInfo(name, int(slots))


@dataclass
class SlotInfo:
    """The place of a rank."""

    hostname: str
    rank: int
    local_rank: int
    cross_rank: int
    size: int
    local_size: int
    cross_size: int

    def to_response_string(self) -> str:
        """The numbers as a rank of an elastic job is told them."""
        numbers = (self.rank, self.size, self.local_rank, self.local_size, self.cross_rank,
                   self.cross_size)  # fmt: skip
        return ",".join(map(str, numbers))


#: The place of a rank that has none.
INVALID_SLOT_INFO = SlotInfo("", -1, -1, -1, -1, -1, -1)


def parse_host_files(filename: str) -> str:
    """Lines ``host slots=4`` as ``"host:4,..."``."""
    hosts = []
    with open(filename, encoding="utf-8") as file:
        for line in file:
            words = line.partition("#")[0]
            if words.strip():
                name, slots = words.split()[0], words.partition("=")[2].strip()
                hosts.append(f"{name}:{slots}")
    return ",".join(hosts)


def parse_hosts_and_slots(hosts: str) -> tuple[list[str], dict[str, int]]:
    """The names of ``"a:4,b:2"`` in their order, and the slots of each."""
    for host in hosts.split(","):
        if not re.fullmatch(r"[\w.-]+:\d+", host.strip()):
            raise ValueError(
                f"Invalid host input {host!r}, please make sure it has format as : "
                "worker-0:2,worker-1:2."
            )
    infos = parse_hosts(hosts)
    return [info.hostname for info in infos], {info.hostname: info.slots for info in infos}


def parse_hosts(hosts_string: str) -> list[HostInfo]:
    """The hosts of ``"a:4,b:2"``."""
    return [HostInfo.from_string(host) for host in hosts_string.split(",")]


def get_host_assignments(
    hosts: Iterable[HostInfo], min_num_proc: int, max_num_proc: int | None = None
) -> list[SlotInfo]:
    """Places for as many ranks as there are slots, up to a number; hosts fill in their order."""
    counts: list[tuple[str, int]] = []
    size = 0
    for host in hosts:
        room = host.slots if max_num_proc is None else min(host.slots, max_num_proc - size)
        counts.append((host.hostname, room))
        size += room
    if size < min_num_proc:
        raise ValueError(
            f"Requested more processes ({min_num_proc}) than there are available slots ({size})"
        )
    places: list[SlotInfo] = []
    for at, (name, count) in enumerate(counts):
        for local_rank in range(count):
            places.append(
                SlotInfo(
                    hostname=name,
                    rank=len(places),
                    local_rank=local_rank,
                    cross_rank=sum(other > local_rank for _, other in counts[:at]),
                    size=size,
                    local_size=count,
                    cross_size=sum(other > local_rank for _, other in counts),
                )
            )
    return places
