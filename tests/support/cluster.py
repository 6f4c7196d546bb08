#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several hosts on one machine: network namespaces that are joined by a bridge.

The bridge is in a namespace of its own, so that the machine's network is not
touched, and everything goes when the namespaces go. Each host has its own
loopback, its own abstract Unix sockets and its own name: host0, host1, ... They
share files and pids. Takes root.

Tests in Python ask for the fixture make_hosts. By hand, or from a test in C:

    tests/support/cluster.py 2 -- command...

runs the command once on each of two hosts, at the same time, with HOST (0, 1),
HOSTS (2) and STORE (an address of host 0, with a port) in its environment, and
ends with the worst of their statuses.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIMIT_S = 30
_numbers = itertools.count()

BIND = ["taskset", "--cpu-list"]

# As ssh has it, the words of the command are one line for a shell.
SSH = """\
#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
number=$((${{1##*.}} - 1))
shift
exec {bind} ip netns exec {mark}h$number unshare --uts \\
    sh -c 'hostname "$0" && eval "$1"' host$number "$*"
"""


def _call(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")


def ip(*words: str) -> None:
    _call("ip", *words)


def limit_rate(space: str, interface: str, rate: str) -> None:
    """What leaves by it leaves no faster; `rate` in tc's words."""
    bucket = ["tbf", "rate", rate, "burst", "256k", "latency", "50ms"]
    _call("tc", "-n", space, "qdisc", "add", "dev", interface, "root", *bucket)


def missing() -> str | None:
    """What this machine lacks, or None."""
    for name in ("ip", "tc", "unshare"):
        if shutil.which(name) is None:
            return f"missing tool: {name}"
    return None if os.geteuid() == 0 else "network namespaces take root"


class Hosts:
    """Hosts 0, 1, ... that see each other at ipv4(i) and ipv6(i).

    With `cores` what runs on a host runs on one of these, which hosts take in turn.
    """

    def __init__(self, count: int, cores: list[int] | None = None) -> None:
        self.count = count
        self.cores = cores
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
        bind = [] if self.cores is None else [*BIND, str(self.cores[host % len(self.cores)])]
        return [*bind, "ip", "netns", "exec", self.name(host), "unshare", "--uts",
                "sh", "-c", 'hostname "$0" && exec "$@"', f"host{host}", *words]  # fmt: skip

    def ssh(self, folder: Path) -> str:
        """A program that does what ssh would: options, a host by its IPv4, a command."""
        program = folder / "ssh"
        bind = ""
        if self.cores is not None:
            cores = " ".join(map(str, self.cores))
            field = f"$((number % {len(self.cores)} + 1))"
            bind = f'{" ".join(BIND)} $(echo {cores} | cut -d " " -f {field})'
        program.write_text(SSH.format(mark=self.mark, bind=bind))
        program.chmod(0o755)
        return str(program)

    def unplug(self, host: int) -> None:
        """Switch the interface off: there is no way to the others any more."""
        ip("-n", self.name(host), "link", "set", "eth0", "down")

    def plug(self, host: int) -> None:
        """And on again."""
        ip("-n", self.name(host), "link", "set", "eth0", "up")

    def silence(self, host: int) -> None:
        """Leave the host its cable, but let nothing through at the other end."""
        ip("-n", self.bridge, "link", "set", f"port{host}", "nomaster")

    def hear(self, host: int) -> None:
        """Let everything through again."""
        ip("-n", self.bridge, "link", "set", f"port{host}", "master", "bridge")

    def set_mtu(self, hosts: int, ports: int) -> None:
        """The longest packet of the hosts, and what the bridge lets through."""
        for host in range(self.count):
            ip("-n", self.name(host), "link", "set", "eth0", "mtu", str(hosts),
               "gso_max_segs", "1")  # fmt: skip
            ip("-n", self.bridge, "link", "set", f"port{host}", "mtu", str(ports))

    @property
    def bridge(self) -> str:
        return f"{self.mark}bridge"

    def open(self) -> None:
        bridge = self.add(self.bridge)
        ip("-n", bridge, "link", "add", "bridge", "type", "bridge")
        ip("-n", bridge, "link", "set", "bridge", "up")
        for host in range(self.count):
            space, port = self.add(self.name(host)), f"port{host}"
            ip("-n", bridge, "link", "add", port, "type", "veth",
               "peer", "name", "eth0", "netns", space)  # fmt: skip
            ip("-n", bridge, "link", "set", port, "master", "bridge", "up")
            ip("-n", space, "address", "add", f"{self.ipv4(host)}/24", "dev", "eth0")
            # No other process can have it, so there is no need to search.
            ip("-n", space, "address", "add", f"{self.ipv6(host)}/64", "dev", "eth0", "nodad")
            # As with a cable that is pulled: a link that comes back has its addresses.
            keep = "/proc/sys/net/ipv6/conf/eth0/keep_addr_on_down"
            run = ["ip", "netns", "exec", space, "sh", "-c", f"echo 1 > {keep}"]
            subprocess.run(run, check=True, timeout=LIMIT_S)
            ip("-n", space, "link", "set", "eth0", "up")

    def add(self, space: str) -> str:
        ip("netns", "add", space)
        self.spaces.append(space)
        ip("-n", space, "link", "set", "lo", "up")
        return space

    def close(self) -> None:
        for space in reversed(self.spaces):
            subprocess.run(["ip", "netns", "delete", space], timeout=LIMIT_S)


@contextmanager
def cluster(count: int) -> Iterator[Hosts]:
    """Make this many hosts for a while."""
    hosts = Hosts(count)
    try:
        hosts.open()
        yield hosts
    finally:
        hosts.close()


def main(words: list[str]) -> int:
    if len(words) < 3 or words[1] != "--" or not words[0].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    lack = missing()
    if lack is not None:
        print(lack.replace("missing tool", "SKIP-MISSING-TOOL"), file=sys.stderr)
        return 77
    with cluster(int(words[0])) as hosts:
        common = {**os.environ, "HOSTS": words[0], "STORE": f"{hosts.ipv4(0)}:4000"}
        started = [
            subprocess.Popen(hosts.command(host, *words[2:]), env={**common, "HOST": str(host)})
            for host in range(hosts.count)
        ]
        return max(abs(process.wait()) for process in started)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
