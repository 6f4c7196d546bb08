# SPDX-License-Identifier: Apache-2.0
"""Somebody on the way, without the key, changes what passes: nothing of it is believed."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Callable

import pytest
from cluster import Hosts, ip
from ranks import Done, environment, program, run_all
from test_encryption import ADD as ADD_TENSORS

LIMIT_S = 90
PORT = 4000

MakeHosts = Callable[[int], Hosts]

OBJECTS = program("exchange_objects.py")
GATHER = program("gather_by_name.py")


def hexed(old: str, new: str) -> str:
    assert len(old) == len(new)
    return f"{old.encode().hex()}={new.encode().hex()}"


@contextmanager
def meddler(hosts: Hosts, *words: str) -> Iterator[list[str]]:
    """Join hosts 0 and 1 by a meddler in place of the bridge; yields what it says."""
    hosts.set_mtu(1500, 1500)
    for host in (0, 1):
        hosts.silence(host)
    script = Path(__file__).resolve().parents[1] / "support" / "meddler.py"
    command = ["ip", "netns", "exec", hosts.bridge, sys.executable, str(script)]
    process = subprocess.Popen(
        [*command, "port0", "port1", *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said: list[str] = []
    try:
        assert process.stdout.readline() == "ready\n"
        reader = threading.Thread(target=said.extend, args=(process.stdout,), daemon=True)
        reader.start()
        yield said
    finally:
        process.kill()
        process.wait()
    reader.join(LIMIT_S)


def run(hosts: Hosts, key_file: str, path: str, **more: str) -> list[Done]:
    """One rank a host."""
    common = {"RUEDA_SIZE": "2", "RUEDA_STORE": f"{hosts.ipv4(0)}:{PORT}",
              "RUEDA_KEY_FILE": key_file, "RUEDA_LOG_LEVEL": "info", **more}  # fmt: skip
    return run_all(
        [hosts.command(rank, sys.executable, path) for rank in range(2)],
        [environment(RUEDA_RANK=str(rank), **common) for rank in range(2)],
        LIMIT_S,
    )


def words_of(done: list[Done]) -> str:
    return "\n".join(one.stdout + one.stderr for one in done)


def test_objects_that_nobody_changes_arrive(make_hosts: MakeHosts, key_file: str) -> None:
    hosts = make_hosts(2)
    with meddler(hosts) as said:
        done = run(hosts, key_file, OBJECTS)
    assert [one.returncode for one in done] == [0, 0], words_of(done)
    for one in done:
        assert one.stdout.splitlines() == [
            "INNOCENT!" * 3,
            str(["INNOCENT?" * 2, "INNOCENT?" * 3]),
        ]
    assert said == []


def test_an_object_that_was_changed_is_not_unpickled(make_hosts: MakeHosts, key_file: str) -> None:
    hosts = make_hosts(2)
    with meddler(hosts, hexed("INNOCENT", "MEDDLING")) as said:
        done = run(hosts, key_file, OBJECTS, RUEDA_ENCRYPT="never")
    first, second = (one.stdout.splitlines() for one in done)
    assert first[0] == "INNOCENT!" * 3  # it is rank 0's own
    assert [line[:8] for line in (first[1], *second)] == ["refused:"] * 3, words_of(done)
    assert "what its key does not prove" in second[0]
    assert "MEDDLING" not in words_of(done)
    assert said  # it was on the way, in the clear


def test_an_object_that_its_sender_has_not_sealed_is_not_unpickled(
    make_hosts: MakeHosts, key_file: str
) -> None:
    """Such as one that a rank in between has changed, where frames are in order."""
    done = run(make_hosts(2), key_file, OBJECTS, RUEDA_TEST_CHANGES_BEHIND_SEAL="1")
    second = done[1].stdout.splitlines()
    assert len(second) == 2, words_of(done)
    assert all("rank 1 refuses the object of rank 0" in line for line in second)
    assert "MEDDLING" not in words_of(done)


OBJECT_CALLS = ["broadcast", "all_gather", "gather", "scatter", "message", "lengths"]


def run_c10d(hosts: Hosts, key_file: str, call: str, folder: Path) -> list[Done]:
    """One rank a host passes objects by this function; the ranks meet by a file."""
    pytest.importorskip("torch", reason="missing tool: torch")
    pytest.importorskip("numpy", reason="missing tool: numpy")  # torch reads objects by it
    common = {"RUEDA_SIZE": "2", "RUEDA_STORE": f"{hosts.ipv4(0)}:{PORT}",
              "RUEDA_KEY_FILE": key_file, "RUEDA_ENCRYPT": "never"}  # fmt: skip
    words = [sys.executable, program("c10d_objects.py")]
    return run_all(
        [hosts.command(rank, *words, str(rank), str(folder / "store"), call) for rank in range(2)],
        [environment(RUEDA_RANK=str(rank), **common) for rank in range(2)],
        LIMIT_S,
    )


@pytest.mark.parametrize("call", OBJECT_CALLS)
def test_an_object_of_torch_distributed_that_was_changed_is_not_unpickled(
    make_hosts: MakeHosts, key_file: str, tmp_path: Path, call: str
) -> None:
    """Torch makes a tensor of it, which nothing tells from others but its type."""
    hosts = make_hosts(2)
    with meddler(hosts, hexed("INNOCENT", "MEDDLING")) as said:
        done = run_c10d(hosts, key_file, call, tmp_path)
    assert said  # it was on the way, in the clear
    assert "MEDDLING" not in words_of(done)
    assert "what its key does not prove" in words_of(done)
    assert [one.returncode for one in done] == [1, 1], words_of(done)


def test_objects_of_torch_distributed_that_nobody_changes_arrive(
    make_hosts: MakeHosts, key_file: str, tmp_path: Path
) -> None:
    hosts = make_hosts(2)
    for call in OBJECT_CALLS:
        (tmp_path / call).mkdir()
        done = run_c10d(hosts, key_file, call, tmp_path / call)
        assert [one.returncode for one in done] == [0, 0], words_of(done)
        assert all("INNOCENT" in one.stdout for one in done), words_of(done)


# Adds up numbers, which takes ranks that have found each other.
ADD = program("add_and_say.py")


def test_where_ranks_are_cannot_be_read_or_changed_on_the_way(
    make_hosts: MakeHosts, key_file: str
) -> None:
    """Whoever could change it could have a rank believe that its peer is near."""
    hosts = make_hosts(2)
    address = hosts.ipv4(1)
    with meddler(hosts, hexed(f"{address}:", f"{address.replace('77', '99')}:")) as said:
        done = run(hosts, key_file, ADD, RUEDA_ENCRYPT="never")
    assert [one.returncode for one in done] == [0, 0], words_of(done)
    assert [one.stdout for one in done] == ["3\n", "3\n"]
    assert said == []


def test_a_bit_that_is_changed_in_what_the_store_hears_ends_that_connection_only(
    make_hosts: MakeHosts, key_file: str
) -> None:
    hosts = make_hosts(2)
    with meddler(hosts, f"flip:{PORT}:150=") as said:
        done = run(hosts, key_file, ADD)
    assert said == ["changed\n"]
    assert [one.returncode for one in done] == [0, 0], words_of(done)
    assert [one.stdout for one in done] == ["3\n", "3\n"]
    refusals = [line for line in done[0].stderr.splitlines() if "the store refused" in line]
    assert len(refusals) == 1, words_of(done)
    assert f"from {hosts.ipv4(1)}:" in refusals[0]
    assert "it was changed on the way" in refusals[0]


def test_a_tensor_that_was_changed_is_not_believed_where_frames_are_authenticated(
    make_hosts: MakeHosts, key_file: str
) -> None:
    """It is in the clear, so the meddler finds it; in the sum it does not appear."""
    old, new = (struct.pack("<f", number) * 16 for number in (1.5, 2.5))
    hosts = make_hosts(2)
    with meddler(hosts, f"{old.hex()}={new.hex()}") as said:
        done = run(hosts, key_file, ADD_TENSORS, RUEDA_ENCRYPT="authenticate")
    assert said
    assert [one.returncode for one in done] == [1, 1], words_of(done)
    assert "what its key does not prove" in words_of(done)


@pytest.mark.parametrize("setting", ["never", "auto", "authenticate"])
def test_what_ranks_negotiate_cannot_be_changed_on_the_way(
    make_hosts: MakeHosts, key_file: str, setting: str
) -> None:
    """Names pass in the clear; one that was changed is noticed however tensors travel."""
    hosts = make_hosts(2)
    with meddler(hosts, hexed("gathered_under_that", "gathered_under_some")) as said:
        done = run(hosts, key_file, GATHER, RUEDA_ENCRYPT=setting)
    assert said
    assert [one.returncode for one in done] == [1, 1], words_of(done)
    assert "what its key does not prove" in words_of(done)
    for one in done:
        assert "some_name" not in one.stdout


def test_a_job_at_public_addresses_is_not_talked_out_of_encryption(
    make_hosts: MakeHosts, key_file: str
) -> None:
    """The meddler changes every public address that it sees into a private one."""
    hosts = make_hosts(2)
    for host in range(2):
        address = f"11.7.0.{host + 1}/24"
        ip("-n", hosts.name(host), "address", "add", address, "dev", "eth0")
    clear = (struct.pack("<f", 1.5) * 16).hex()
    with meddler(hosts, hexed("11.7.0.", "10.7.0."), f"{clear}={clear[::-1]}") as said:
        done = run(hosts, key_file, ADD_TENSORS, RUEDA_NETWORK="11.7.0.0/24")
    assert [one.returncode for one in done] == [0, 0], words_of(done)
    assert "tensors are sealed (RUEDA_ENCRYPT=auto, and rank 0" in done[0].stderr
    assert said == []
