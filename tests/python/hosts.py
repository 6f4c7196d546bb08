# SPDX-License-Identifier: Apache-2.0
"""Several hosts on one machine: network namespaces that are joined by a bridge.

The bridge is in a namespace of its own, so that the machine's network is not
touched, and everything goes when the namespaces go.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

LIMIT_S = 30
_numbers = itertools.count()

# As ssh has it, the words of the command are one line for a shell.
SSH = """\
#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
number=$((${{1##*.}} - 1))
shift
exec ip netns exec {mark}h$number unshare --uts \\
    sh -c 'hostname "$0" && eval "$1"' host$number "$*"
"""


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        pytest.fail(f"ip {' '.join(words)}: {done.stderr}")


class Hosts:
    """Hosts 0, 1, ... that see each other at ipv4(i) and ipv6(i)."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.mark = f"rueda{os.getpid()}n{next(_numbers)}"
        self.spaces: list[str] = []

    def name(self, host: int) -> str:
        return f"{self.mark}h{host}"

    def ipv4(self, host: int) -> str:
        return f"10.77.0.{host + 1}"

    def ipv6(self, host: int) -> str:
        return f"fd77::{host + 1:x}"

    def command(self, host: int, *words: str) -> list[str]:
        """These words as a command of that host, which has its own name."""
        return ["ip", "netns", "exec", self.name(host), "unshare", "--uts",
                "sh", "-c", 'hostname "$0" && exec "$@"', f"host{host}", *words]  # fmt: skip

    def ssh(self, folder: Path) -> str:
        """A program that does what ssh would: options, a host by its IPv4, a command."""
        program = folder / "ssh"
        program.write_text(SSH.format(mark=self.mark))
        program.chmod(0o755)
        return str(program)

    def unplug(self, host: int) -> None:
        """Take the cable out: there is no way to the others any more."""
        ip("-n", self.name(host), "link", "set", "eth0", "down")

    def silence(self, host: int) -> None:
        """Leave the host its cable, but let nothing through at the other end."""
        ip("-n", f"{self.mark}bridge", "link", "set", f"port{host}", "nomaster")

    def open(self) -> None:
        bridge = self.add(f"{self.mark}bridge")
        ip("-n", bridge, "link", "add", "bridge", "type", "bridge")
        ip("-n", bridge, "link", "set", "bridge", "up")
        for host in range(self.count):
            space, port = self.add(self.name(host)), f"port{host}"
            ip("-n", bridge, "link", "add", port, "type", "veth",
               "peer", "name", "eth0", "netns", space)  # fmt: skip
            ip("-n", bridge, "link", "set", port, "master", "bridge", "up")
            ip("-n", space, "address", "add", f"{self.ipv4(host)}/24", "dev", "eth0")
            # Nobody else can have it, so it need not be looked for.
            ip("-n", space, "address", "add", f"{self.ipv6(host)}/64", "dev", "eth0", "nodad")
            ip("-n", space, "link", "set", "eth0", "up")

    def add(self, space: str) -> str:
        ip("netns", "add", space)
        self.spaces.append(space)
        ip("-n", space, "link", "set", "lo", "up")
        return space

    def close(self) -> None:
        for space in reversed(self.spaces):
            subprocess.run(["ip", "netns", "delete", space], timeout=LIMIT_S)


@pytest.fixture
def make_hosts() -> Iterator[Callable[[int], Hosts]]:
    """A function that makes so many hosts, which go with the test."""
    for name in ("ip", "unshare"):
        if shutil.which(name) is None:
            pytest.skip(f"missing tool: {name}")
    if os.geteuid() != 0:
        pytest.skip("network namespaces take root")
    made: list[Hosts] = []

    def make(count: int) -> Hosts:
        made.append(Hosts(count))
        made[-1].open()
        return made[-1]

    try:
        yield make
    finally:
        for hosts in made:
            hosts.close()
