# SPDX-License-Identifier: Apache-2.0
"""Ranks of several hosts find each other, know who is where, and add up."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from cluster import Hosts, ip, limit_rate
from ranks import Done, check_way, environment, program, run_all

LIMIT_S = 60
PORT = 4000
HELLO = Path(__file__).resolve().parents[2] / "examples" / "python" / "hello.py"
END = program("end_while_others_wait.py")
REPORT_PLACE = program("report_place.py")

MakeHosts = Callable[[int], Hosts]


def start(hosts: Hosts, layout: list[int], **more: str) -> list[Done]:
    """Rank i on host layout[i]; -1: it does not come."""
    come = [rank for rank, host in enumerate(layout) if host >= 0]
    more = {"RUEDA_LOG_LEVEL": "info", **more}
    done = run_all(
        [hosts.command(layout[rank], sys.executable, REPORT_PLACE) for rank in come],
        [
            environment(RUEDA_RANK=str(rank), RUEDA_SIZE=str(len(layout)), **more)
            for rank in come
        ],
        LIMIT_S,
    )  # fmt: skip
    way = "shm+tcp" if len({layout[rank] for rank in come}) > 1 else "shm"
    for one in done:
        if one.returncode == 0:
            check_way(way, one.stderr)
    return done


def reports(done: list[Done]) -> list[dict[str, Any]]:
    assert [one.returncode for one in done] == [0] * len(done), "".join(one.stderr for one in done)
    said = [json.loads(one.stdout) for one in done]
    for one in said:
        assert (one["allreduce"], one["sum"]) == (0, one["size"])
        assert one["is_right"]
    return said


def places(said: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    """Local rank and size, cross rank and size."""
    return [
        tuple(one[f"{part}_{what}"] for part in ("local", "cross") for what in ("rank", "size"))
        for one in said
    ]


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_two_hosts_of_two_ranks(make_hosts: MakeHosts, key_file: str, family: str) -> None:
    hosts = make_hosts(2)
    address = hosts.ipv4(0) if family == "ipv4" else f"[{hosts.ipv6(0)}]"
    started = time.monotonic()
    done = start(hosts, [0, 0, 1, 1], RUEDA_STORE=f"{address}:{PORT}", RUEDA_KEY_FILE=key_file)
    assert time.monotonic() - started < 30
    said = reports(done)
    assert [(one["rank"], one["size"]) for one in said] == [(rank, 4) for rank in range(4)]
    assert places(said) == [(0, 2, 0, 2), (1, 2, 0, 2), (0, 2, 1, 2), (1, 2, 1, 2)]
    assert all(one["is_homogeneous"] for one in said)


def test_connections_are_made_on_first_use(make_hosts: MakeHosts, key_file: str) -> None:
    """Before that rank 1 has only one, with the store, which rank 0 reaches inside its host."""
    hosts = make_hosts(2)
    said = reports(start(hosts, [0, 1], RUEDA_STORE=f"{hosts.ipv4(0)}:{PORT}",
                         RUEDA_KEY_FILE=key_file, RUEDA_TCP_STREAMS="3"))  # fmt: skip
    assert said[1]["early"] == 1
    assert said[0]["late"] - said[0]["early"] >= 3
    assert said[1]["late"] - said[1]["early"] >= 3


def test_nothing_is_paced_between_namespaces_of_one_system(
    make_hosts: MakeHosts, key_file: str
) -> None:
    """Whatever the system does with connections that cross a network."""
    hosts = make_hosts(2)
    done = start(hosts, [0, 1], RUEDA_STORE=f"{hosts.ipv4(0)}:{PORT}", RUEDA_KEY_FILE=key_file,
                 RUEDA_TCP_STREAMS="3")  # fmt: skip
    said = reports(done)
    assert [one["not_paced"] >= 3 for one in said] == [True, True]


def test_hosts_with_unlike_numbers_of_ranks(make_hosts: MakeHosts, key_file: str) -> None:
    hosts = make_hosts(3)
    store = f"{hosts.ipv4(1)}:{PORT}"
    said = reports(start(hosts, [1, 0, 1, 2, 1, 2], RUEDA_STORE=store, RUEDA_KEY_FILE=key_file))
    assert places(said) == [
        (0, 3, 0, 3),
        (0, 1, 1, 3),
        (1, 3, 0, 2),
        (0, 2, 2, 3),
        (2, 3, 0, 1),
        (1, 2, 1, 2),
    ]
    assert not any(one["is_homogeneous"] for one in said)


def received(hosts: Hosts, host: int, interface: str) -> int:
    """Bytes, so far."""
    words = ["ip", "-n", hosts.name(host), "-s", "-j", "link", "show", "dev", interface]
    done = subprocess.run(words, capture_output=True, check=True, timeout=LIMIT_S)
    return json.loads(done.stdout)[0]["stats64"]["rx"]["bytes"]


@pytest.mark.parametrize("allowed", ["", "10.78.0.0/16", "eth0"])
def test_streams_take_all_ways_that_lead_there(
    make_hosts: MakeHosts, key_file: str, allowed: str
) -> None:
    """
    A second cable, whose ends have other names, and a bridge that every host has. No cable
    can carry it all at once: what one of them takes at once need not go by two.
    """
    hosts = make_hosts(2)
    names = ["fast", "ib7"]
    ip("-n", hosts.name(0), "link", "add", names[0], "type", "veth",
       "peer", "name", names[1], "netns", hosts.name(1))  # fmt: skip
    for host, name in enumerate(names):
        space = hosts.name(host)
        ip("-n", space, "address", "add", f"10.78.0.{host + 1}/24", "dev", name)
        ip("-n", space, "link", "set", name, "up")
        for cable in ("eth0", name):
            limit_rate(space, cable, "500mbit")
        ip("-n", space, "link", "add", "docker0", "type", "bridge")
        ip("-n", space, "address", "add", "172.17.0.1/16", "dev", "docker0")
        ip("-n", space, "link", "set", "docker0", "up")
    reports(start(hosts, [0, 1], RUEDA_STORE=f"{hosts.ipv4(0)}:{PORT}", RUEDA_KEY_FILE=key_file,
                  RUEDA_TCP_STREAMS="4", RUEDA_NETWORK=allowed, NUMBERS="4000001",
                  TURNS="4"))  # fmt: skip
    for host, name in enumerate(names):
        is_used = {one: received(hosts, host, one) > 1_000_000 for one in ("eth0", name)}
        assert is_used == {"eth0": allowed != "10.78.0.0/16", name: allowed != "eth0"}


@pytest.mark.parametrize(
    "settings",
    [
        {"RUEDA_ALGO": "allreduce:ring"},
        {"RUEDA_ALGO": "allreduce:tree", "RUEDA_TRANSPORT": "messages"},
        {"RUEDA_TRANSPORT": "tcp"},
        {"RUEDA_TUNE_FILE": "rows"},
    ],
    ids=["algo", "messages", "tcp", "tune"],
)
@pytest.mark.parametrize("whose", [0, 1])
def test_hosts_whose_settings_differ_take_those_of_rank_0(
    make_hosts: MakeHosts, key_file: str, tmp_path: Path, whose: int, settings: dict[str, str]
) -> None:
    """Everybody must choose alike, or the ranks would wait for different messages."""
    hosts = make_hosts(2)
    (tmp_path / "rows").write_text("allreduce:0-inf:ring;")
    if "RUEDA_TUNE_FILE" in settings:
        settings = {"RUEDA_TUNE_FILE": str(tmp_path / "rows")}
    layout = [0, 0, 1, 1]
    done = run_all(
        [hosts.command(host, sys.executable, REPORT_PLACE) for host in layout],
        [
            environment(
                RUEDA_RANK=str(rank),
                RUEDA_SIZE="4",
                RUEDA_STORE=f"{hosts.ipv4(0)}:{PORT}",
                RUEDA_KEY_FILE=key_file,
                RUEDA_LOG_LEVEL="info",
                **(settings if host == whose else {}),
            )
            for rank, host in enumerate(layout)
        ],
        LIMIT_S,
    )
    reports(done)
    is_tcp = settings.get("RUEDA_TRANSPORT") == "tcp" and whose == 0
    for one in done:
        check_way("tcp" if is_tcp else "shm+tcp", one.stderr)


def test_all_hosts_hear_that_rank_0_cannot_read_its_table(
    make_hosts: MakeHosts, key_file: str
) -> None:
    hosts = make_hosts(2)
    started = time.monotonic()
    done = start(
        hosts,
        [0, 1],
        RUEDA_STORE=f"{hosts.ipv4(0)}:{PORT}",
        RUEDA_KEY_FILE=key_file,
        RUEDA_TUNE_FILE="/nowhere",
    )
    assert time.monotonic() - started < 10
    for one in done:
        assert one.returncode == 1
        assert 'RUEDA_TUNE_FILE "/nowhere": No such file or directory' in one.stderr


def test_rank_0_may_leave_at_once(make_hosts: MakeHosts, key_file: str) -> None:
    """It holds the store, which the others need for a little longer."""
    hosts = make_hosts(2)
    words = (sys.executable, program("relay_slowly.py"), str(PORT), hosts.ipv4(0), str(PORT))
    common = environment(
        RUEDA_SIZE="2", RUEDA_KEY_FILE=key_file, RUEDA_START_TIMEOUT="4s", STAY_S="0",
        RUEDA_LOG_LEVEL="info",
    )  # fmt: skip
    with subprocess.Popen(
        hosts.command(1, *words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as relay:
        try:
            assert relay.stdout is not None
            assert relay.stdout.readline() == b"up\n"
            done = run_all(
                [hosts.command(host, sys.executable, REPORT_PLACE) for host in range(2)],
                [
                    {**common, "RUEDA_RANK": "0", "RUEDA_STORE": f"{hosts.ipv4(0)}:{PORT}"},
                    {**common, "RUEDA_RANK": "1", "RUEDA_STORE": f"127.0.0.1:{PORT}"},
                ],
                LIMIT_S,
            )
        finally:
            relay.kill()
    assert [one["rank"] for one in reports(done)] == [0, 1]
    for one in done:
        check_way("shm+tcp", one.stderr)


def test_one_host_with_a_store_works_as_ever(make_hosts: MakeHosts, key_file: str) -> None:
    hosts = make_hosts(1)
    said = reports(
        start(hosts, [0, 0], RUEDA_STORE=f"{hosts.ipv4(0)}:{PORT}", RUEDA_KEY_FILE=key_file)
    )
    assert places(said) == [(0, 2, 0, 1), (1, 2, 0, 1)]
    assert [one["allreduce"] for one in said] == [0, 0]


def test_a_step_of_slurm_knows_its_store(make_hosts: MakeHosts, key_file: str) -> None:
    """The port is 20000 + (31 * 7 + 2) % 12000."""
    hosts = make_hosts(2)
    done = run_all(
        [hosts.command(host, sys.executable, REPORT_PLACE) for host in range(2)],
        [
            environment(
                SLURM_PROCID=str(host),
                SLURM_STEP_NUM_TASKS="2",
                SLURM_STEP_NUM_NODES="2",
                SLURM_STEP_TASKS_PER_NODE="1(x2)",
                SLURM_NODEID=str(host),
                SLURM_LOCALID="0",
                SLURM_JOB_ID="7",
                SLURM_STEP_ID="2",
                SLURM_STEP_NODELIST=f"{hosts.ipv4(0)},{hosts.ipv4(1)}",
                RUEDA_KEY_FILE=key_file,
                RUEDA_LOG_LEVEL="info",
            )
            for host in range(2)
        ],
        LIMIT_S,
    )
    assert places(reports(done)) == [(0, 1, 0, 2), (0, 1, 1, 2)]
    for one in done:
        assert f"the ranks meet at the store {hosts.ipv4(0)}:20219" in one.stderr
        check_way("shm+tcp", one.stderr)


@pytest.mark.parametrize("launcher", ["openmpi", "hydra"])
def test_mpirun_needs_neither_store_nor_key(
    make_hosts: MakeHosts,
    need_tool,
    tmp_path: Path,
    launcher: str,
) -> None:
    hosts = make_hosts(2)
    ssh = hosts.ssh(tmp_path)
    if launcher == "openmpi":
        command = [need_tool("mpirun.openmpi"), "--allow-run-as-root", "-n", "4",
                   "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", ssh,
                   "--host", f"{hosts.ipv4(0)}:2,{hosts.ipv4(1)}:2"]  # fmt: skip
    else:
        command = [need_tool("mpiexec.hydra"), "-n", "4", "-ppn", "2",
                   "-launcher", "ssh", "-launcher-exec", ssh, "-localhost", hosts.ipv4(0),
                   "-hosts", f"{hosts.ipv4(0)},{hosts.ipv4(1)}"]  # fmt: skip
    (done,) = run_all(
        [hosts.command(0, *command, sys.executable, REPORT_PLACE)],
        [environment(RUEDA_LOG_LEVEL="info")],
        LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    said = sorted(map(json.loads, done.stdout.splitlines()), key=lambda one: one["rank"])
    assert places(said) == [(0, 2, 0, 2), (1, 2, 0, 2), (0, 2, 1, 2), (1, 2, 1, 2)]
    way = {"openmpi": "PMIx", "hydra": "PMI-1"}[launcher]
    assert done.stderr.count(f"the launcher introduces the ranks by {way}") == 4
    check_way("shm+tcp", done.stderr, 4)


def test_torchrun_needs_neither_store_nor_key(make_hosts: MakeHosts, need_tool) -> None:
    hosts = make_hosts(2)
    command = [need_tool("torchrun"), "--nnodes", "2", "--nproc-per-node", "1",
               "--master-addr", hosts.ipv4(0), "--master-port", str(PORT)]  # fmt: skip
    done = run_all(
        [hosts.command(host, *command, "--node-rank", str(host), str(HELLO)) for host in range(2)],
        [environment(RUEDA_LOG_LEVEL="info")] * 2,
        LIMIT_S,
    )
    for rank, one in enumerate(done):
        assert f"torchrun's RANK and WORLD_SIZE say rank {rank} of 2" in one.stderr
        assert "the caller introduces the ranks" in one.stderr
        assert f"rank {rank} of 2: the sum is 3" in one.stdout
        check_way("shm+tcp", one.stderr)


# ---- Bad ends ---------------------------------------------------------------

@pytest.mark.parametrize("victim", [0, 3])
@pytest.mark.parametrize("way", ["fail", "first", "kill"])
def test_how_a_rank_of_another_host_ended_is_told(
    make_hosts: MakeHosts, key_file: str, way: str, victim: int
) -> None:
    """Its own words, or who is lost; also where ranks have not met before."""
    hosts = make_hosts(2)
    store = f"{hosts.ipv4(0)}:{PORT}"
    layout = [0, 0, 1, 1]
    done = run_all(
        [hosts.command(host, sys.executable, END) for host in layout],
        [
            environment(RUEDA_RANK=str(rank), RUEDA_SIZE="4", RUEDA_STORE=store,
                        RUEDA_KEY_FILE=key_file, RUEDA_LOG_LEVEL="info", VICTIM=str(victim),
                        WAY=way, RUEDA_HOST_TIMEOUT="60s")
            for rank in range(4)
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
        if way != "kill":
            assert "ValueError: the loss is NaN" in words


@pytest.mark.parametrize(
    ("fault", "cause"),
    [("unplug", "Network is unreachable"), ("silence", "Connection timed out")],
)
def test_a_host_that_cannot_reach_the_store_is_told(
    make_hosts: MakeHosts, key_file: str, fault: str, cause: str
) -> None:
    hosts = make_hosts(2)
    getattr(hosts, fault)(1)
    store = f"{hosts.ipv4(0)}:{PORT}"
    started = time.monotonic()
    first, second = start(
        hosts, [0, 1], RUEDA_STORE=store, RUEDA_KEY_FILE=key_file, RUEDA_START_TIMEOUT="2s"
    )
    assert time.monotonic() - started < 20
    assert "of 2 ranks these did not come in time: 1; are they running" in first.stderr
    assert f"rank 1 found no store of the job at {store} ({cause})" in second.stderr
    assert "can this host reach it?" in second.stderr


def test_a_rank_missing_on_another_host_is_named_by_all(
    make_hosts: MakeHosts,
    key_file: str,
) -> None:
    hosts = make_hosts(2)
    store = f"{hosts.ipv4(0)}:{PORT}"
    done = start(
        hosts,
        [0, 0, 1, -1],
        RUEDA_STORE=store,
        RUEDA_KEY_FILE=key_file,
        RUEDA_START_TIMEOUT="2s",
    )
    for one in done:
        assert one.returncode == 1
        assert "of 4 ranks these did not come in time: 3;" in one.stderr


def test_a_store_has_to_be_where_rank_0_is(make_hosts: MakeHosts, key_file: str) -> None:
    hosts = make_hosts(2)
    store = f"{hosts.ipv4(1)}:{PORT}"
    first, _ = start(
        hosts, [0, 1], RUEDA_STORE=store, RUEDA_KEY_FILE=key_file, RUEDA_START_TIMEOUT="1s"
    )
    assert "not one of this host, where rank 0 is to hold it" in first.stderr


def test_hosts_that_were_cloned_from_one_snapshot_are_told_apart(
    make_hosts: MakeHosts, key_file: str, tmp_path: Path
) -> None:
    """They have one boot id, and the numbers of their network namespaces are the same.

    So do the "hosts" of this test, once ranks are shown such a number. Both have the
    bridge of containers, too.
    """
    hosts, folder, layout = make_hosts(2), tmp_path / "ns", [0, 0, 1, 1]
    folder.mkdir()
    for name in ("net", "pid"):
        (folder / name).touch()
    for host in range(2):
        ip("-n", hosts.name(host), "address", "add", "172.17.0.1/16", "dev", "eth0")
    pretend = [sys.executable, program("pretend_clone.py"), str(folder), REPORT_PLACE]
    more = {"RUEDA_STORE": f"{hosts.ipv4(0)}:{PORT}", "RUEDA_KEY_FILE": key_file,
            "RUEDA_START_TIMEOUT": "20s"}  # fmt: skip
    done = run_all(
        [hosts.command(host, *pretend) for host in layout],
        [environment(RUEDA_RANK=str(rank), RUEDA_SIZE="4", **more) for rank in range(4)],
        LIMIT_S,
    )
    assert places(reports(done)) == [(0, 2, 0, 2), (1, 2, 0, 2), (0, 2, 1, 2), (1, 2, 1, 2)]
