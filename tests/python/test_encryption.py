# SPDX-License-Identifier: Apache-2.0
"""What passes between hosts can be read on the wire, or not, as RUEDA_ENCRYPT says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable

import pytest
from cluster import Hosts, ip
from ranks import Done, environment, program, run_all

LIMIT_S = 60
PORT = 4000
ADD = program("add_recognisable.py")

MakeHosts = Callable[[int], Hosts]


def add(hosts: Hosts, key_file: str, *encrypt: str, network: str = "") -> list[Done]:
    """One rank a host, with these settings."""
    more = {"RUEDA_STORE": f"{hosts.ipv4(0)}:{PORT}", "RUEDA_KEY_FILE": key_file,
            "RUEDA_LOG_LEVEL": "info", "RUEDA_NETWORK": network}  # fmt: skip
    done = run_all(
        [hosts.command(rank, sys.executable, ADD) for rank in range(len(encrypt))],
        [
            environment(
                RUEDA_RANK=str(rank), RUEDA_SIZE=str(len(encrypt)), RUEDA_ENCRYPT=wish, **more
            )
            for rank, wish in enumerate(encrypt)
        ],
        LIMIT_S,
    )  # fmt: skip
    return done


@contextmanager
def sniffer(hosts: Hosts, host: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        hosts.command(host, sys.executable, program("sniff.py")), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("encrypt", "is_clear"),
    [
        (("never", "never"), True),
        (("auto", "auto"), True),  # the addresses are private ones
        (("always", "always"), False),
        (("always", "auto"), False),
        (("auto", "always"), False),
        (("authenticate", "auto"), True),
    ],
)
def test_who_listens_on_the_wire(
    make_hosts: MakeHosts, key_file: str, encrypt: tuple[str, str], is_clear: bool
) -> None:
    hosts = make_hosts(2)
    with sniffer(hosts, 1) as process:
        done = add(hosts, key_file, *encrypt)
        assert all("messages go by shm+tcp\n" in one.stderr for one in done)
        assert [one.returncode for one in done] == [0, 0], "".join(one.stderr for one in done)
        if not is_clear:
            process.kill()
        assert process.communicate(timeout=LIMIT_S)[0] == ("seen\n" if is_clear else "")


@pytest.mark.parametrize(
    ("addresses", "network", "is_clear"),
    [
        (["11.7.0.1/24", "11.7.0.2/24"], "11.7.0.0/24", False),
        (["2001:db8::1/64", "2001:db8::2/64"], "2001:db8::/64", False),
        (["169.254.7.1/24", "169.254.7.2/24"], "169.254.7.0/24", True),
    ],
)
def test_by_itself_what_leaves_private_networks_is_sealed(
    make_hosts: MakeHosts, key_file: str, addresses: list[str], network: str, is_clear: bool
) -> None:
    hosts = make_hosts(2)
    for host, address in enumerate(addresses):
        more = ["nodad"] if ":" in address else []
        ip("-n", hosts.name(host), "address", "add", address, "dev", "eth0", *more)
    with sniffer(hosts, 1) as process:
        done = add(hosts, key_file, "auto", "auto", network=network)
        assert [one.returncode for one in done] == [0, 0], "".join(one.stderr for one in done)
        if not is_clear:
            process.kill()
        assert process.communicate(timeout=LIMIT_S)[0] == ("seen\n" if is_clear else "")


@pytest.mark.parametrize(
    ("encrypt", "words"),
    [
        (("never", "auto"), "are neither encrypted nor authenticated (rank 0 has"),
        (("auto", "auto"), "are neither encrypted nor authenticated (RUEDA_ENCRYPT=auto, and all"),
        (("auto", "always"), "are sealed (rank 1 has RUEDA_ENCRYPT=always)"),
        (("authenticate", "auto"), "are authenticated and not encrypted (rank 0 has"),
    ],
)
def test_one_line_a_job_says_how_it_is_protected(
    make_hosts: MakeHosts, key_file: str, encrypt: tuple[str, str], words: str
) -> None:
    done = add(make_hosts(2), key_file, *encrypt)
    lines = [line for one in done for line in one.stderr.splitlines() if "between hosts" in line]
    assert len(lines) == 1
    assert f"tensors {words}" in lines[0]
    talk = "sealed" if "are sealed" in words else "authenticated"
    safe = "objects, bytes and integers" if "neither" in words else "objects"
    rest = f"the store and last words are sealed; {safe} are authenticated"
    assert f"negotiation is {talk}; {rest}" in lines[0]


def test_hosts_that_cannot_agree_say_so(make_hosts: MakeHosts, key_file: str) -> None:
    done = add(make_hosts(2), key_file, "never", "always")
    assert [one.returncode for one in done] == [1, 1]
    for one in done:
        for word in ("RUEDA_ENCRYPT", "never", "always", "rank 0", "rank 1"):
            assert word in one.stderr
