# SPDX-License-Identifier: Apache-2.0
"""Faults of the network: ranks that die, hosts that fall silent, links that come back."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable

import pytest
from cluster import Hosts
from ranks import check_way, environment, program, run_all
from test_meddler import meddler

LIMIT_S = 40
# A loss is told within a second, or 2.5 s of silence; ten times that on a busy machine.
LATE_S = 25
# Longer than LATE_S, so that a loss is noticed by other means than silence.
NO_SILENCE = {"RUEDA_HOST_TIMEOUT": "60s"}
PORT = 4000
LOST = -5
MakeHosts = Callable[[int], Hosts]

class Rank:
    """A process; its first line is read before anything is done to it."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.error = ""

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> dict[str, Any]:
        """What it says in the end."""
        out, self.error = self.process.communicate(timeout=LIMIT_S)
        lines = out.splitlines()
        assert lines and lines[-1].startswith("{"), self.error
        assert "; messages go by " in self.error and "tcp\n" in self.error
        return json.loads(lines[-1])

    def complaints(self) -> list[str]:
        """What it logged that is more than information."""
        return [line for line in self.error.splitlines() if ": info: " not in line]

    def kill(self) -> None:
        self.process.kill()


@contextmanager
def job(hosts: Hosts, layout: list[int], key_file: str, **more: str) -> Iterator[list[Rank]]:
    common = {"RUEDA_STORE": f"{hosts.ipv4(layout[0])}:{PORT}", "RUEDA_KEY_FILE": key_file,
              "RUEDA_SIZE": str(len(layout)), "KIND": "allreduce", "RUEDA_LOG_LEVEL": "info",
              "RUEDA_HOST_TIMEOUT": "2.5s",
              **more}  # fmt: skip
    ranks = [
        Rank(
            hosts.command(host, sys.executable, program("collective_steps.py")),
            environment(RUEDA_RANK=str(rank), **common),
        )
        for rank, host in enumerate(layout)
    ]
    try:
        yield ranks
    finally:
        for rank in ranks:
            rank.kill()
            rank.process.wait()


def check_lost(rank: Rank, since: float, *words: str) -> dict[str, Any]:
    """It has ended in time, and says who is gone."""
    said = rank.end()
    assert said["status"] == LOST, rank.error
    for word in words:
        assert word in said["words"], said
    assert said["ended"] - since < LATE_S, said
    return said


# ---- Death -------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["allreduce", "allgather", "broadcast", "alltoall", "reduce_scatter", "barrier"]
)
def test_a_killed_rank_is_named_by_all(
    make_hosts: MakeHosts, key_file: str, kind: str
) -> None:
    hosts = make_hosts(3)
    more = {"KIND": kind, "RUEDA_TRANSPORT": "tcp", **NO_SILENCE}
    with job(hosts, [0, 0, 1, 2], key_file, **more) as ranks:
        assert [rank.read() for rank in ranks] == ["going"] * 4
        ranks[2].kill()
        since = time.time()
        for rank in (0, 1, 3):
            check_lost(ranks[rank], since, "rank 2 ", "on host host1)")


def test_the_death_of_rank_0_which_keeps_the_store_is_told(
    make_hosts: MakeHosts, key_file: str
) -> None:
    hosts = make_hosts(3)
    with job(hosts, [0, 1, 1, 2], key_file, **NO_SILENCE) as ranks:
        assert [rank.read() for rank in ranks] == ["going"] * 4
        ranks[0].kill()
        since = time.time()
        for rank in ranks[1:]:
            check_lost(rank, since, "rank 0 (on host host0)")


def test_a_rank_that_dies_before_its_first_operation_is_told(
    make_hosts: MakeHosts, key_file: str
) -> None:
    """Rank 2 waits to be dialled by rank 1, with which it has no connection."""
    hosts = make_hosts(3)
    with job(hosts, [0, 1, 2], key_file, LATE="1", **NO_SILENCE) as ranks:
        assert [rank.read() for rank in ranks] == ["joined", "late", "joined"]
        time.sleep(0.3)
        ranks[1].kill()
        since = time.time()
        for rank in (0, 2):
            check_lost(ranks[rank], since, "rank 1 ", "on host host1)", "is gone")


def test_a_rank_that_left_before_anybody_called_is_told(
    make_hosts: MakeHosts, key_file: str
) -> None:
    hosts = make_hosts(2)
    more = {"RUEDA_STORE": f"{hosts.ipv4(0)}:{PORT}", "RUEDA_KEY_FILE": key_file,
            "RUEDA_LOG_LEVEL": "info"}  # fmt: skip
    done = run_all(
        [hosts.command(rank, sys.executable, program("leave_early.py")) for rank in range(2)],
        [environment(RUEDA_RANK=str(rank), RUEDA_SIZE="2", **more) for rank in range(2)],
        20,
    )  # fmt: skip
    assert [one.returncode for one in done] == [0, 0], "".join(one.stderr for one in done)
    assert "rank 0" in done[1].stdout and "host0" in done[1].stdout
    assert "has left" in done[1].stdout
    for one in done:
        check_way("shm+tcp", one.stderr)


@pytest.mark.parametrize("stopped", [0, 1])
def test_a_stopped_process_is_only_slow(make_hosts: MakeHosts, key_file: str, stopped: int) -> None:
    """For longer than any limit of a host, and with full windows; also who keeps the store."""
    hosts = make_hosts(2)
    with job(hosts, [0, 1], key_file, STEPS="30", COUNT="1000000") as ranks:
        assert [rank.read() for rank in ranks] == ["going"] * 2
        os.kill(ranks[stopped].process.pid, signal.SIGSTOP)
        time.sleep(5)
        assert ranks[1 - stopped].process.poll() is None
        os.kill(ranks[stopped].process.pid, signal.SIGCONT)
        said = [rank.end() for rank in ranks]
        assert [(one["status"], one["done"]) for one in said] == [(0, 30)] * 2
        assert said[1 - stopped]["longest"] > 4
        assert not any(rank.complaints() for rank in ranks)


@pytest.mark.parametrize("more", [{"AWAY_S": "3"}, {"AWAY_S": "0", "STOP_S": "2"}],
                         ids=["computes", "is waited for"])  # fmt: skip
def test_a_reset_of_the_way_to_the_store_does_no_harm(
    make_hosts: MakeHosts, key_file: str, tmp_path: Path, more: dict[str, str]
) -> None:
    """Be the rank at work for long, or rank 0, which keeps the store, stopped meanwhile."""
    hosts = make_hosts(2)
    more = {"RUEDA_STORE": f"{hosts.ipv4(0)}:{PORT}", "RUEDA_KEY_FILE": key_file,
            "RUEDA_LOG_LEVEL": "info", "PORT": str(PORT), "PID_FILE": str(tmp_path / "pid"),
            **more}  # fmt: skip
    done = run_all(
        [hosts.command(rank, sys.executable, program("cut_from_store.py")) for rank in range(2)],
        [environment(RUEDA_RANK=str(rank), RUEDA_SIZE="2", **more) for rank in range(2)],
        LIMIT_S,
    )
    for one in done:
        lines = one.stderr.splitlines()
        assert one.returncode == 0, one.stderr
        assert all(": info: " in line for line in lines)
        check_way("shm+tcp", one.stderr)


def test_the_end_of_a_launcher_that_keeps_the_store_is_told(
    make_hosts: MakeHosts, need_tool, tmp_path: Path
) -> None:
    """Its own ranks end with it; these are ours."""
    hosts = make_hosts(2)
    words = ["-np", "2", "-H", f"{hosts.ipv4(0)}:1,{hosts.ipv4(1)}:1"]
    hosts.ssh(tmp_path)
    launcher = subprocess.Popen(
        hosts.command(0, need_tool("ruedarun"), *words, sys.executable, program("hold_place.py")),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        env=environment(PATH=f"{tmp_path}:{os.environ['PATH']}"),
    )  # fmt: skip
    with launcher:
        try:
            assert launcher.stdout is not None
            store, key = launcher.stdout.readline().split("<stdout>:")[1].split()
            path = tmp_path / "key"
            path.touch(0o600)
            path.write_text(key + "\n")
            more = {"RUEDA_STORE": store, "RUEDA_STORE_KEEPER": "launcher"}
            with job(hosts, [0, 1], str(path), LATE="1", **more) as ranks:
                assert [rank.read() for rank in ranks] == ["joined", "late"]
                launcher.kill()
                check_lost(ranks[0], time.time(), "the launcher, which keeps the store of the "
                           "job, is gone or cannot be reached")  # fmt: skip
        finally:
            launcher.kill()


# ---- Bad frames --------------------------------------------------------------

def test_a_bad_frame_is_told_of_on_all_hosts(make_hosts: MakeHosts, key_file: str) -> None:
    """Also where it did not come, and to who sent it."""
    hosts = make_hosts(3)
    layout = [0, 1, 2, 2]
    more = {"RUEDA_STORE": f"{hosts.ipv4(0)}:{PORT}", "RUEDA_KEY_FILE": key_file,
            "RUEDA_TCP_STREAMS": "1", "RUEDA_LOG_LEVEL": "info", "PORT": str(PORT),
            "ADDRESS": hosts.ipv4(0)}  # fmt: skip
    done = run_all(
        [hosts.command(host, sys.executable, program("send_bad_frame.py")) for host in layout],
        [environment(RUEDA_RANK=str(rank), RUEDA_SIZE="4", **more) for rank in range(4)],
        LIMIT_S,
    )
    words = ("rank 0 cannot reach rank 1 (on host host1): its connection was closed because it "
             "sent what its key does not prove")  # fmt: skip
    for one in done:
        said = json.loads(one.stdout)
        assert said["status"] == LOST and words in said["words"], said
        check_way("shm+tcp", one.stderr)


# ---- Silence -----------------------------------------------------------------


@pytest.mark.parametrize("fault", ["unplug", "silence"])
@pytest.mark.parametrize("lost", [0, 2])
def test_a_silent_host_is_named(
    make_hosts: MakeHosts, key_file: str, fault: str, lost: int
) -> None:
    hosts = make_hosts(3)
    with job(hosts, [0, 1, 1, 2], key_file) as ranks:
        assert [rank.read() for rank in ranks] == ["going"] * 4
        getattr(hosts, fault)(lost)
        since = time.time()
        for rank, host in enumerate([0, 1, 1, 2]):
            if host != lost:
                check_lost(ranks[rank], since, f"host host{lost} has been silent for 2.5 s",
                           f"(on host host{lost}) is lost")  # fmt: skip
            else:
                check_lost(ranks[rank], since, "has been silent for 2.5 s")


@pytest.mark.parametrize("fault", ["unplug", "silence"])
def test_a_link_that_comes_back_does_no_harm(
    make_hosts: MakeHosts, key_file: str, fault: str
) -> None:
    hosts = make_hosts(2)
    back = {"unplug": "plug", "silence": "hear"}[fault]
    with job(hosts, [0, 1, 1], key_file, STEPS="100", COUNT="20000", PAUSE="0.02") as ranks:
        assert [rank.read() for rank in ranks] == ["going"] * 3
        for _ in range(2):
            getattr(hosts, fault)(1)
            time.sleep(1)
            getattr(hosts, back)(1)
            time.sleep(1)
        said = [rank.end() for rank in ranks]
        assert [(one["status"], one["done"]) for one in said] == [(0, 100)] * 3
        assert said[0]["longest"] > 0.9  # it did wait


def test_the_limit_of_silence_can_be_longer(make_hosts: MakeHosts, key_file: str) -> None:
    hosts = make_hosts(2)
    with job(hosts, [0, 1], key_file, STEPS="40", PAUSE="0.02", RUEDA_HOST_TIMEOUT="20s") as ranks:
        assert [rank.read() for rank in ranks] == ["going"] * 2
        hosts.unplug(1)
        time.sleep(3.5)
        hosts.plug(1)
        assert [rank.end()["done"] for rank in ranks] == [40, 40]


# ---- Bytes that do not get through --------------------------------------------


def test_packets_too_large_for_the_way_are_named(make_hosts: MakeHosts, key_file: str) -> None:
    """The handshake is small, and gets through."""
    hosts = make_hosts(2)
    hosts.set_mtu(hosts=9000, ports=1500)
    with job(hosts, [0, 1], key_file, COUNT="500000") as ranks:
        said = [rank.end() for rank in ranks]
    hint = "is the MTU of an interface too large for the way?"
    for one in said:
        assert one["status"] == LOST
        assert "cannot reach rank" in one["words"]
        assert one["words"].split(" while ")[0].endswith("; " + hint)
    assert any("no bytes have got through for 5 s; " + hint in rank.error for rank in ranks)


FORGOTTEN = r"idle for (\d+) s; a firewall may have forgotten the connection"


def rest_behind_a_firewall(
    hosts: Hosts, key_file: str, **more: str
) -> tuple[list[dict[str, Any]], list[Rank], list[str]]:
    """Two ranks compute for longer between two steps than the firewall remembers."""
    with meddler(hosts, "forget:3=") as said, job(
        hosts, [0, 1], key_file, COUNT="20000", STEPS="3", **more
    ) as ranks:
        ends = [rank.end() for rank in ranks]
    return ends, ranks, said


def test_a_connection_that_a_firewall_forgot_is_named(
    make_hosts: MakeHosts, key_file: str
) -> None:
    ends, ranks, said = rest_behind_a_firewall(make_hosts(2), key_file, PAUSE="6")
    assert "forgot\n" in said
    for end in ends:
        assert (end["status"], end["done"]) == (LOST, 1)
        found = re.search(FORGOTTEN, end["words"])
        assert found is not None and int(found[1]) >= 3, end["words"]
        assert "MTU" not in end["words"]
    told = [rank for rank in ranks if re.search(f"got through for 5 s; {FORGOTTEN}", rank.error)]
    assert told, ranks[0].error


def test_so_is_one_that_nobody_used_meanwhile(make_hosts: MakeHosts, key_file: str) -> None:
    """The systems ask too late, get no answer, and give the connection up."""
    ends, _, said = rest_behind_a_firewall(make_hosts(2), key_file, PAUSE="12", ASK_S="4")
    assert "forgot\n" in said
    for end in ends:
        assert (end["status"], end["done"]) == (LOST, 1)
    assert any(re.search("connection broke: .*" + FORGOTTEN, end["words"]) for end in ends), ends


def test_one_that_is_asked_in_time_is_not_forgotten(make_hosts: MakeHosts, key_file: str) -> None:
    ends, _, said = rest_behind_a_firewall(make_hosts(2), key_file, PAUSE="6", ASK_S="1")
    assert [(end["status"], end["done"]) for end in ends] == [(0, 3), (0, 3)]
    assert said == []


# ---- Ports ----------------------------------------------------------------------

NO_PORT = ("Cannot assign requested address; no port is free for it: widen the system's "
           "net.ipv4.ip_local_port_range")  # fmt: skip


def run_without_ports(
    hosts: Hosts, key_file: str, **more: str
) -> tuple[list[dict[str, Any]], list[Rank]]:
    """Rank 0, which is to connect with rank 1, has two ports, and both are taken."""
    with job(hosts, [0, 1], key_file, STEPS="3", **more) as ranks:
        return [rank.end() for rank in ranks], ranks


def count_lines(rank: Rank, words: str) -> int:
    return len([line for line in rank.error.splitlines() if words in line])


def test_ports_that_are_free_again_are_used(make_hosts: MakeHosts, key_file: str) -> None:
    ends, ranks = run_without_ports(make_hosts(2), key_file, HOLD_PORTS_S="4")
    assert [(end["status"], end["done"]) for end in ends] == [(0, 3), (0, 3)]
    assert count_lines(ranks[0], f"warn: this process cannot open a connection: {NO_PORT}") == 1


def test_ports_that_have_run_out_are_named(make_hosts: MakeHosts, key_file: str) -> None:
    """On both sides, after RUEDA_START_TIMEOUT."""
    more = {"HOLD_PORTS_S": "60", "RUEDA_START_TIMEOUT": "5s"}
    ends, ranks = run_without_ports(make_hosts(2), key_file, **more)
    for end in ends:
        assert (end["status"], end["done"]) == (LOST, 0)
        assert "cannot reach rank" in end["words"]
    assert NO_PORT in ends[0]["words"]
    assert count_lines(ranks[0], "this process cannot open a connection") == 1
