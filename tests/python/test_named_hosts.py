# SPDX-License-Identifier: Apache-2.0
"""Tensors by name between several hosts. Ranks are tests/multi/named_main.c."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Callable

import pytest
from cluster import Hosts
from named import all_well, on_hosts

MakeHosts = Callable[[int], Hosts]


@pytest.mark.parametrize("layout", [[0, 0, 1, 1], [0, 1, 0, 2, 2, 2]])
def test_everything_comes_out_right_between_hosts(
    make_hosts: MakeHosts, key_file: str, layout: list[int]
) -> None:
    """All kinds in any order, groups, sets, join, mismatches and compression."""
    hosts = make_hosts(max(layout) + 1)
    all_well(on_hosts(hosts, layout, key_file, "everything"))
    # Little enough to be in the pipes until they are read.
    done = on_hosts(hosts, layout, key_file, "compress", RUEDA_LOG_LEVEL="trace")
    all_well(done)
    for one in done:
        assert re.search(r"allreduce number \d+ of set 1, \d+ bytes, runs as hier", one.stderr)


def test_many_sets_that_overlap_run_at_the_same_time(make_hosts: MakeHosts, key_file: str) -> None:
    all_well(on_hosts(make_hosts(2), [0, 0, 0, 1, 1, 1], key_file, "many_sets"))


@pytest.mark.parametrize(
    "setting, algos",
    [("", {"hier", "ring"}), ("0", {"ring"}), ("1", {"hier"})],
)
def test_hosts_gather_in_stages_unless_told_otherwise(
    make_hosts: MakeHosts, key_file: str, setting: str, algos: set[str]
) -> None:
    """By default not what is short, such as the numbers of rows."""
    done = on_hosts(make_hosts(2), [0, 0, 1, 1], key_file, "groups", RUEDA_LOG_LEVEL="trace",
                    HOROVOD_HIERARCHICAL_ALLGATHER=setting)  # fmt: skip
    all_well(done)
    for one in done:
        used = re.findall(r"engine: .*allgather number \d+ of set 1, .* runs as (\w+)", one.stderr)
        assert set(used) == algos


@pytest.mark.parametrize("other", ["0,1", "0,1;1-2;3", ""])
def test_hosts_with_other_process_sets_hear_of_it(
    make_hosts: MakeHosts, key_file: str, other: str
) -> None:
    by_host = [{"RUEDA_PROCESS_SETS": "0,1;1-2"}, {"RUEDA_PROCESS_SETS": other}]
    hosts = make_hosts(2)
    done = on_hosts(hosts, [0, 1, 0, 1], key_file, "sets", by_host=by_host, is_met=False)
    has = f'has "{other}"' if other else "has none"
    for one in done:
        assert one.returncode != 0
        assert f'Mismatched process sets: rank 0 has "0,1;1-2", but rank 1 {has}' in one.stderr


def test_hosts_with_other_settings_work_together(make_hosts: MakeHosts, key_file: str) -> None:
    """How tensors are joined and numbered is rank 0's word for all hosts."""
    large = {"RUEDA_FUSION_BYTES": "8m", "RUEDA_CACHE_CAPACITY": "1000"}
    small = {"RUEDA_FUSION_BYTES": "4k", "RUEDA_CACHE_CAPACITY": "5"}
    none = {"RUEDA_FUSION_BYTES": "0", "RUEDA_CACHE_CAPACITY": "0"}
    hosts = make_hosts(2)
    for by_host in ([large, small], [small, large], [large, none], [none, large]):
        all_well(on_hosts(hosts, [0, 0, 1, 1], key_file, "sets", by_host=by_host))


@pytest.mark.parametrize("way", ["kill", "exit", "leave"])
@pytest.mark.parametrize("victim", [0, 3])
def test_who_ends_while_tensors_are_pending_is_named(
    make_hosts: MakeHosts, key_file: str, way: str, victim: int
) -> None:
    hosts = make_hosts(2)
    layout = [0, 0, 1, 1]
    done = on_hosts(hosts, layout, key_file, way, str(victim))
    for rank, one in enumerate(done):
        if rank == victim:
            continue
        assert one.returncode == 0, one.stdout + one.stderr
        status, words = one.stdout.split(" ", 1)
        assert int(status) == -5, one.stdout + one.stderr
        assert f"rank {victim}" in words
        assert f"host{layout[victim]}" in words


def test_a_stall_between_hosts_is_told(make_hosts: MakeHosts, key_file: str) -> None:
    hosts = make_hosts(2)
    done = on_hosts(hosts, [0, 0, 1, 1], key_file, "stall", "3", RUEDA_STALL_WARN="1s",
                    RUEDA_STALL_SHUTDOWN="2s")  # fmt: skip
    assert "Missing ranks:\n3: [alone, also.alone]" in done[0].stderr
    for one in done:
        status, words = one.stdout.split(" ", 1)
        assert int(status) < 0
        assert "tensors have waited for more than 2 seconds" in words
        assert "3!: [alone, also.alone]" in words


def test_a_timeline_has_the_ranks_of_all_hosts(
    make_hosts: MakeHosts, key_file: str, tmp_path: Path
) -> None:
    hosts = make_hosts(2)
    path = tmp_path / "timeline.json"
    all_well(on_hosts(hosts, [0, 0, 1, 1], key_file, "order", RUEDA_TIMELINE=str(path)))
    events = json.loads(path.read_text())
    assert {event.get("tid", 0) for event in events if event["ph"] == "B"} == set(range(4))
    names = {event["args"]["name"] for event in events if event.get("name") == "process_name"}
    assert names >= {f"op.0.{number}" for number in range(60)}


def test_rank_0_alone_has_the_timeline_of_all_hosts(
    make_hosts: MakeHosts, key_file: str, tmp_path: Path
) -> None:
    path = tmp_path / "timeline.json"
    all_well(on_hosts(make_hosts(2), [0, 0, 1, 1], key_file, "lone_timeline",
                      TIMELINE_FILE=str(path)))  # fmt: skip
    events = json.loads(path.read_text())
    names = {event["pid"]: event["args"]["name"] for event in events
             if event.get("name") == "process_name"}  # fmt: skip
    ends = [(names[event["pid"]], event.get("tid", 0)) for event in events
            if event["ph"] == "E" and "args" in event]  # fmt: skip
    assert sorted(ends) == [("during", rank) for rank in range(4)]


@pytest.mark.parametrize("early", [0, 1])
def test_a_timeline_has_one_clock_though_hosts_have_several(
    make_hosts: MakeHosts, key_file: str, tmp_path: Path, early: int
) -> None:
    """The clock of one host is 5,000 s ahead; no output may show that."""
    ahead = ["unshare", "--time", "--monotonic", "5000", "--fork", "--kill-child"]
    if subprocess.run([*ahead, "true"], capture_output=True).returncode != 0:
        pytest.skip("there are no namespaces for clocks")
    path = tmp_path / "timeline.json"
    all_well(on_hosts(make_hosts(2), [0, 0, 1, 1], key_file, "timed",
                      ways=[ahead if host == early else [] for host in range(2)],
                      RUEDA_TIMELINE=str(path)))  # fmt: skip
    begun: dict[int, dict[int, list[float]]] = {}
    for event in json.loads(path.read_text()):
        if event.get("name") in ("ALLREDUCE", "BROADCAST"):
            ranks = begun.setdefault(event["pid"], {})
            ranks.setdefault(event.get("tid", 0), []).append(event["ts"])
    assert len(begun) == 24
    for ranks in begun.values():
        assert {rank: len(times) for rank, times in ranks.items()} == dict.fromkeys(range(4), 3)
        for times in zip(*ranks.values()):
            assert max(times) - min(times) < 1e6  # what all have agreed upon, each begins
