# SPDX-License-Identifier: Apache-2.0
"""Allreduce between hosts of several ranks: stages inside and between them."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Callable

import pytest
from cluster import Hosts
from ranks import Done, check_way, environment, run_all
from test_hosts import received

LIMIT_S = 60
PORT = 4000

# Runs allreduces of the sizes in SIZES and says how they ended. The numbers are
# whole and small, so that sums are exact, also in 16 bits.
ADD = r"""
import array, ctypes, json, os, rueda, sys
class Args(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("kind", ctypes.c_int), ("dtype", ctypes.c_int),
                ("reduction", ctypes.c_int), ("root", ctypes.c_int), ("flags", ctypes.c_uint),
                ("send", ctypes.c_void_p), ("recv", ctypes.c_void_p), ("count", ctypes.c_size_t),
                ("send_counts", ctypes.c_void_p), ("recv_counts", ctypes.c_void_p),
                ("prescale", ctypes.c_double), ("postscale", ctypes.c_double),
                ("compression", ctypes.c_int)]
library, ctx = ctypes.CDLL(rueda.get_library()), ctypes.c_void_p()
library.rueda_alloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
if library.rueda_init(None, ctypes.byref(ctx)) != 0:
    sys.exit(1)
rank, size = library.rueda_rank(ctx), library.rueda_size(ctx)
total = size * (size - 1) // 2

def inputs(count):
    return array.array("f", [(i % 7) + rank for i in range(count)])

def answer(count, by):
    return array.array("f", [((i % 7) * size + total) * by for i in range(count)])

def add(send, recv, count, way):
    args = Args(ctypes.sizeof(Args), 0, 7, 0, 0, way == "keep", send, recv, count, None, None,
                1.0, 0.5 if way == "scaled" else 1.0, {"fp16": 1, "bf16": 2}.get(way, 0))
    return library.rueda_run(ctx, ctypes.byref(args))

def check(count, way):
    given = inputs(count)
    out = given if way in ("in place", "keep") else array.array("f", bytes(4 * count))
    send, recv = given.buffer_info()[0], out.buffer_info()[0]
    if way == "shared":
        send, recv = ctypes.c_void_p(), ctypes.c_void_p()
        assert library.rueda_alloc(ctx, 4 * count, ctypes.byref(send)) == 0
        assert library.rueda_alloc(ctx, 4 * count, ctypes.byref(recv)) == 0
        ctypes.memmove(send, given.buffer_info()[0], 4 * count)
        status = add(send, recv, count, way)
        ctypes.memmove(out.buffer_info()[0], recv, 4 * count)
        library.rueda_free(ctx, send)
        library.rueda_free(ctx, recv)
    else:
        status = add(send, recv, count, way)
    return status == 0 and out == answer(count, 0.5 if way == "scaled" else 1)

report = [[size, way, check(size, way)] for size in map(int, os.environ["SIZES"].split())
          for way in os.environ["WAYS"].split(",")]
sys.stdout.write(json.dumps(report) + "\n")
library.rueda_barrier(ctx)
library.rueda_shutdown(ctx)
"""

MakeHosts = Callable[[int], Hosts]


def run(hosts: Hosts, layout: list[int], key_file: str, **more: str) -> list[Done]:
    """Rank i on host layout[i]."""
    common = {"RUEDA_STORE": f"{hosts.ipv4(layout[0])}:{PORT}", "RUEDA_KEY_FILE": key_file,
              "RUEDA_LOG_LEVEL": "info", **more}  # fmt: skip
    return run_all(
        [hosts.command(host, sys.executable, "-c", ADD) for host in layout],
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
               WAYS="out of place,in place,keep,scaled,shared,fp16,bf16")  # fmt: skip
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

# Ranks add again and again, until one ends in some way and the others find out.
ENDS = r"""
import ctypes, os, rueda, signal, sys, threading, time
library, ctx, count = ctypes.CDLL(rueda.get_library()), ctypes.c_void_p(), 300_000
library.rueda_error.restype = ctypes.c_char_p
if library.rueda_init(None, ctypes.byref(ctx)) != 0:
    sys.exit(1)
x, way = (ctypes.c_float * count)(), os.environ["WAY"]
def add():
    return library.rueda_allreduce(ctx, x, x, ctypes.c_size_t(count), 7, 0)
if library.rueda_rank(ctx) == int(os.environ["VICTIM"]):
    how = {"kill": (os.kill, (os.getpid(), signal.SIGKILL)),
           "fail": (library.rueda_fail, (ctx, b"ValueError: NaN")),
           "leave": (int, ())}[way]
    timer = threading.Timer(0.3, *how)
    timer.start()
    for i in range(3 if way == "leave" else 1_000_000):
        if add() != 0:
            break
    timer.join()
    library.rueda_shutdown(ctx)
    sys.exit(3)
status = 0
while status == 0:
    began = time.monotonic()
    status = add()
print(status, time.monotonic() - began, library.rueda_error(ctx).decode())
library.rueda_shutdown(ctx)
"""


@pytest.mark.parametrize("layout, victim", [([0, 0, 1, 1], 3), ([0, 0, 1], 1)])
@pytest.mark.parametrize("way", ["fail", "kill", "leave"])
def test_a_rank_that_is_gone_ends_all_others(
    make_hosts: MakeHosts, key_file: str, layout: list[int], victim: int, way: str
) -> None:
    """Also one that carries no slice, and one that left in good order."""
    hosts = make_hosts(2)
    done = run_all(
        [hosts.command(host, sys.executable, "-c", ENDS) for host in layout],
        [
            environment(RUEDA_RANK=str(rank), RUEDA_SIZE=str(len(layout)),
                        RUEDA_STORE=f"{hosts.ipv4(0)}:{PORT}", RUEDA_KEY_FILE=key_file,
                        RUEDA_LOG_LEVEL="info", VICTIM=str(victim), WAY=way)
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
        assert float(took) < 3
        assert f"rank {victim} " in words and f"host host{layout[victim]}" in words, words
        if way == "fail":
            assert "ValueError: NaN" in words
