# SPDX-License-Identifier: Apache-2.0
"""Whoever else calls: strangers at the doors of a job that runs, and doors that do not fit."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from typing import Callable

import pytest
from cluster import Hosts
from ranks import environment, program, run_all
from test_network_faults import PORT, Rank, job

MakeHosts = Callable[[int], Hosts]
STRANGER = program("call_as_stranger.py")

KINDS = ["wrong key", "http", "version", "scanner", "silent", "one byte a second", "flood"]

# What a rank or the store says about them, by kind of refusal.
WORDS = {
    "wrong key": "the peer's proof is wrong: its key is not ours",
    "http": "the peer does not speak the protocol of rueda",
    "version": "the peer speaks versions 7 to 9 of the protocol, this side speaks 2 to 2",
    "scanner": "closed the connection 0 bytes into its hello",
    "silent": "it did not prove itself in time",
    "one byte a second": "it did not prove itself in time",
    "flood": "it had not proven itself, and many others connect",
}


def listeners(hosts: Hosts, host: int) -> list[tuple[str, int]]:
    """Where processes of that host listen for TCP."""
    done = subprocess.run(
        ["ip", "netns", "exec", hosts.name(host), "ss", "-Hltn"],
        capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    found = [line.split()[3].rsplit(":", 1) for line in done.stdout.splitlines()]
    return [(address.strip("[]"), int(port)) for address, port in found]


def rank_port(hosts: Hosts, host: int) -> int:
    return next(
        port for address, port in listeners(hosts, host)
        if address == hosts.ipv4(host) and port != PORT
    )  # fmt: skip


def call(hosts: Hosts, kind: str, port: int, hold_s: float = 0, host: int = 0) -> None:
    """From the last host, where no rank is."""
    words = [sys.executable, STRANGER, kind, hosts.ipv4(host), str(port), str(hold_s)]
    done = subprocess.run(
        hosts.command(hosts.count - 1, *words),
        capture_output=True, text=True, timeout=40,
    )  # fmt: skip
    assert done.stdout == "done\n", done.stderr


def end_well(ranks: list[Rank], steps: int) -> None:
    said = [rank.end() for rank in ranks]
    assert [(one["status"], one["done"]) for one in said] == [(0, steps)] * len(ranks)


def test_strangers_are_refused_and_named_once(make_hosts: MakeHosts, key_file: str) -> None:
    """All kinds at both doors, while a job adds; the flood comes last."""
    hosts = make_hosts(3)
    with job(hosts, [0, 1], key_file, STEPS="350", PAUSE="0.03") as ranks:
        assert [rank.read() for rank in ranks] == ["going"] * 2
        doors = {"the store": PORT, "rank 0": rank_port(hosts, 0)}
        callers = [
            subprocess.Popen(
                hosts.command(2, sys.executable, STRANGER, kind, hosts.ipv4(0), str(port)),
                stdout=subprocess.PIPE, text=True,
            )
            for kind in KINDS if kind not in ("flood", "http") for port in doors.values()
        ]  # fmt: skip
        for caller in callers:
            assert caller.communicate(timeout=30)[0] == "done\n"
        for port in doors.values():
            call(hosts, "flood", port, 0.3)
        end_well(ranks, 350)
    for who in doors:
        said = [line for line in ranks[0].error.splitlines() if f" {who} refused " in line]
        for kind in KINDS:
            if kind != "http":
                assert any(WORDS[kind] in line for line in said), ranks[0].error
        assert f"from {hosts.ipv4(2)}:" in said[0]
        # A thousand callers and more, and a line or two for each kind of refusal.
        assert len(said) < 12
        more = [re.search(r"refused (\d+) more callers", line) for line in said]
        assert sum(int(one[1]) for one in more if one) > 900
    assert ranks[1].complaints() == []


@pytest.mark.parametrize("door", ["rank", "store"])
def test_an_http_request_is_refused(make_hosts: MakeHosts, key_file: str, door: str) -> None:
    hosts = make_hosts(3)
    with job(hosts, [0, 1], key_file, STEPS="60", PAUSE="0.02") as ranks:
        assert [rank.read() for rank in ranks] == ["going"] * 2
        call(hosts, "http", PORT if door == "store" else rank_port(hosts, 0))
        end_well(ranks, 60)
    assert len(ranks[0].complaints()) == 1
    assert WORDS["http"] in ranks[0].complaints()[0]


def test_ranks_find_each_other_in_a_flood(make_hosts: MakeHosts, key_file: str) -> None:
    """A thousand callers stay on the line while ranks connect for the first time."""
    hosts = make_hosts(3)
    with job(hosts, [0, 1], key_file, STEPS="20", LATE_S="1.5") as ranks:
        deadline = time.monotonic() + 20
        while not listeners(hosts, 1):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        call(hosts, "flood", rank_port(hosts, 1), 1, host=1)
        end_well(ranks, 20)


# ---- Doors -------------------------------------------------------------------


def test_ranks_listen_where_they_may_only(make_hosts: MakeHosts, key_file: str) -> None:
    hosts = make_hosts(2)
    with job(
        hosts, [0, 1], key_file, RUEDA_NETWORK="10.77.0.0/24", STEPS="60", PAUSE="0.02"
    ) as ranks:
        assert [rank.read() for rank in ranks] == ["going"] * 2
        for host in range(2):
            assert {address for address, _ in listeners(hosts, host)} == {hosts.ipv4(host)}
        end_well(ranks, 60)


def test_hosts_with_ipv6_only(make_hosts: MakeHosts, key_file: str) -> None:
    hosts = make_hosts(2)
    for host in range(2):
        subprocess.run(
            ["ip", "-n", hosts.name(host), "-4", "address", "flush", "dev", "eth0"],
            check=True, timeout=30,
        )  # fmt: skip
    with job(hosts, [0, 1], key_file, STEPS="20", RUEDA_STORE=f"[{hosts.ipv6(0)}]:{PORT}") as ranks:
        end_well(ranks, 20)


def fail_to_start(hosts: Hosts, key_file: str, ranks: list[int], **more: str) -> list[str]:
    """The words of ranks of a job of two that cannot start."""
    done = run_all(
        [hosts.command(rank, sys.executable, program("start_by_library.py")) for rank in ranks],
        [environment(RUEDA_RANK=str(rank), RUEDA_SIZE="2", RUEDA_KEY_FILE=key_file,
                     RUEDA_START_TIMEOUT="2s", **more) for rank in ranks],
        40,
    )  # fmt: skip
    return [one.stderr for one in done]


def test_an_address_in_use_is_named(make_hosts: MakeHosts, key_file: str) -> None:
    hosts = make_hosts(1)
    store = f"{hosts.ipv4(0)}:{PORT}"
    with subprocess.Popen(
        hosts.command(0, sys.executable, program("hold_port.py"), hosts.ipv4(0), str(PORT)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout is not None and other.stdout.readline() == "up\n"
        (words,) = fail_to_start(hosts, key_file, [0], RUEDA_STORE=store)
        other.kill()
    assert f"the store cannot listen at {store}: Address already in use" in words
    assert "choose another port" in words


def test_a_name_that_does_not_resolve_is_named(make_hosts: MakeHosts, key_file: str) -> None:
    hosts = make_hosts(1)
    (words,) = fail_to_start(hosts, key_file, [0], RUEDA_STORE="no-such-host.invalid:4000")
    assert 'cannot find the address of "no-such-host.invalid:4000"' in words


def test_no_route_between_ranks_is_named(make_hosts: MakeHosts, key_file: str) -> None:
    """They meet at the store, but the network that they are told to use is not joined."""
    hosts = make_hosts(2)
    for host in range(2):
        name = hosts.name(host)
        for words in (["link", "add", "alone", "type", "veth", "peer", "name", "end"],
                      ["address", "add", f"10.78.{host}.1/24", "dev", "alone"],
                      ["link", "set", "end", "up"],
                      ["link", "set", "alone", "up"]):  # fmt: skip
            subprocess.run(["ip", "-n", name, *words], check=True, timeout=30)
    with job(
        hosts, [0, 1], key_file, RUEDA_NETWORK="10.78.0.0/16", RUEDA_START_TIMEOUT="3s"
    ) as ranks:
        said = [rank.end() for rank in ranks]
    assert [one["status"] for one in said] == [-5, -5]
    for one in said:
        assert re.search(r"rank (0 cannot reach rank 1|1 cannot reach rank 0) \(on host host[01]\)",
                         one["words"])  # fmt: skip
        assert "Network is unreachable" in one["words"]
