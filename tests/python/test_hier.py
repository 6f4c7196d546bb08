# SPDX-License-Identifier: Apache-2.0
"""Allreduce between hosts of several ranks: stages inside and between them."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Callable

import pytest
from cluster import Hosts
from ranks import Done, check_way, environment, program, run_all
from test_hosts import received

LIMIT_S = 60
PORT = 4000

MakeHosts = Callable[[int], Hosts]


def run(hosts: Hosts, layout: list[int], key_file: str, **more: str) -> list[Done]:
    """Rank i on host layout[i]."""
    common = {"RUEDA_STORE": f"{hosts.ipv4(layout[0])}:{PORT}", "RUEDA_KEY_FILE": key_file,
              "RUEDA_LOG_LEVEL": "info", **more}  # fmt: skip
    return run_all(
        [hosts.command(host, sys.executable, program("add_sizes.py")) for host in layout],
        [
            environment(RUEDA_RANK=str(rank), RUEDA_SIZE=str(len(layout)), **common)
            for rank in range(len(layout))
        ],
        LIMIT_S,
    )


def reports(done: list[Done]) -> list[Any]:
    assert [one.returncode for one in done] == [0] * len(done), "".join(one.stderr for one in done)
    assert all(re.search(r"; messages go by (shm\+)?tcp\n", one.stderr) for one in done)
    return [said for one in done for said in json.loads(one.stdout)]


def algos(one: Done) -> dict[int, str]:
    """Which algorithm ran, by the bytes of the vector."""
    task = r"engine: .*allreduce number \d+ of set 0, (\d+) bytes, runs as (\w+)"
    lines = re.findall(task, one.stderr)
    return {int(size): name for size, name in lines}


def stages(one: Done) -> set[tuple[str, int, str]]:
    """Kind, ranks and algorithm of each stage."""
    lines = re.findall(r"hier: (\w+) of \d+ bytes between (\d+) ranks runs as (\w+)", one.stderr)
    return {(kind, int(ranks), name) for kind, ranks, name in lines}


@pytest.mark.parametrize("layout", [[0, 0, 1, 1], [0, 0, 1], [0, 1, 0, 1, 1]])
def test_hosts_of_several_ranks_add_in_stages(
    make_hosts: MakeHosts, key_file: str, layout: list[int]
) -> None:
    """Exact answers, by `hier` from 16 KiB on, and inside a host by `direct`."""
    hosts = make_hosts(2)
    done = run(hosts, layout, key_file, RUEDA_LOG_LEVEL="trace", SIZES="3 5000 1000003",
               WAYS="out of place,in place,scaled,shared,fp16,bf16")  # fmt: skip
    assert [said for said in reports(done) if not said[2]] == []
    lanes = min(layout.count(0), layout.count(1))
    for rank, one in enumerate(done):
        inside = layout.count(layout[rank])
        assert algos(one)[20000] == algos(one)[4000012] == "hier"
        used = stages(one)
        assert {name for kind, _, name in used if kind != "allreduce"} == {"direct"}
        assert {ranks for kind, ranks, _ in used if kind != "allreduce"} == {inside}
        has_slice = layout[:rank].count(layout[rank]) < lanes
        assert any(kind == "allreduce" for kind, _, _ in used) == has_slice
        assert all(ranks == 2 for kind, ranks, _ in used if kind == "allreduce")


@pytest.mark.parametrize(
    ("setting", "algo"), [("", "halving_doubling"), ("allreduce:0-inf@3-3:ring", "ring")]
)
def test_slices_travel_between_hosts_by_halving_or_a_ring(
    make_hosts: MakeHosts, key_file: str, setting: str, algo: str
) -> None:
    """As the table of algorithms has it for as many ranks as there are hosts."""
    done = run(make_hosts(3), [0, 0, 1, 1, 2, 2], key_file, RUEDA_LOG_LEVEL="trace",
               RUEDA_ALGO=setting, SIZES="500000", WAYS="out of place,fp16")  # fmt: skip
    assert all(said[2] for said in reports(done))
    for one in done:
        assert algos(one)[2000000] == "hier"
        between = {(ranks, name) for kind, ranks, name in stages(one) if kind == "allreduce"}
        assert between == {(3, algo)}


def test_compression_halves_what_passes_between_hosts(make_hosts: MakeHosts, key_file: str) -> None:
    """Each of two hosts gets the slices of the other: the vector once."""
    hosts = make_hosts(2)
    before, passed = received(hosts, 1, "eth0"), {}
    for way in ("out of place", "fp16", "bf16"):
        done = run(hosts, [0, 0, 1, 1], key_file, SIZES="1000000", WAYS=way)
        assert all(said[2] for said in reports(done))
        now = received(hosts, 1, "eth0")
        passed[way], before = now - before, now
    assert 4_000_000 < passed["out of place"] < 4_400_000
    assert 2_000_000 < passed["fp16"] < 2_200_000
    assert 2_000_000 < passed["bf16"] < 2_200_000


def test_small_vectors_and_overruled_ones_do_not_take_hier(
    make_hosts: MakeHosts, key_file: str
) -> None:
    hosts = make_hosts(2)
    common = {"RUEDA_LOG_LEVEL": "trace", "WAYS": "out of place", "SIZES": "3 5000"}
    done = run(hosts, [0, 0, 1, 1], key_file, **common)
    assert all(said[2] for said in reports(done))
    assert [algos(one) for one in done] == [{12: "doubling", 20000: "hier"}] * 4
    done = run(hosts, [0, 0, 1, 1], key_file, RUEDA_ALGO="allreduce:ring", **common)
    assert all(said[2] for said in reports(done))
    assert [algos(one) for one in done] == [{12: "ring", 20000: "ring"}] * 4


def test_one_rank_a_host_takes_hier_to_compress(make_hosts: MakeHosts, key_file: str) -> None:
    hosts = make_hosts(3)
    for way, algo in (("out of place", "doubling"), ("fp16", "hier")):
        done = run(hosts, [0, 1, 2], key_file, RUEDA_LOG_LEVEL="trace", SIZES="5000", WAYS=way)
        assert all(said[2] for said in reports(done))
        assert [algos(one) for one in done] == [{20000: algo}] * 3


def test_messages_serve_inside_a_host_where_settings_ask_for_them(
    make_hosts: MakeHosts, key_file: str
) -> None:
    hosts = make_hosts(2)
    done = run(hosts, [0, 0, 1, 1], key_file, RUEDA_LOG_LEVEL="trace", RUEDA_TRANSPORT="tcp",
               SIZES="50001", WAYS="out of place,in place,fp16")  # fmt: skip
    assert all(said[2] for said in reports(done))
    for one in done:
        assert {name for kind, _, name in stages(one) if kind != "allreduce"} == {"ring"}


# ---- Bad ends ---------------------------------------------------------------

@pytest.mark.parametrize("layout, victim", [([0, 0, 1, 1], 3), ([0, 0, 1], 1)])
@pytest.mark.parametrize("way", ["fail", "kill", "leave"])
def test_a_rank_that_is_gone_ends_all_others(
    make_hosts: MakeHosts, key_file: str, layout: list[int], victim: int, way: str
) -> None:
    """Also one that carries no slice, and one that left in good order."""
    hosts = make_hosts(2)
    done = run_all(
        [hosts.command(host, sys.executable, program("add_until_one_ends.py")) for host in layout],
        [
            environment(RUEDA_RANK=str(rank), RUEDA_SIZE=str(len(layout)),
                        RUEDA_STORE=f"{hosts.ipv4(0)}:{PORT}", RUEDA_KEY_FILE=key_file,
                        RUEDA_LOG_LEVEL="info", VICTIM=str(victim), WAY=way,
                        RUEDA_HOST_TIMEOUT="60s")
            for rank in range(len(layout))
        ],
        LIMIT_S,
    )  # fmt: skip
    for rank, one in enumerate(done):
        check_way("shm+tcp", one.stderr)
        if rank == victim:
            continue
        status, took, words = one.stdout.split(" ", 2)
        assert int(status) == -5, one.stderr
        assert float(took) < 10
        assert f"rank {victim} " in words and f"host host{layout[victim]}" in words, words
        if way == "fail":
            assert "ValueError: NaN" in words
