# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs on several hosts: network namespaces, and a stand-in for ssh."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

from test_elastic import LIMIT_S, PROGRAM, Job, Script, script  # noqa: F401 -- script is a fixture
from test_ruedarun_hosts import Cluster, make_cluster  # noqa: F401 -- a fixture


def start(cluster: Cluster, tmp_path: Path, *words: str, steps: int, pause: float) -> Job:
    command = [sys.executable, str(PROGRAM), str(tmp_path / "log"), str(steps), str(pause)]
    path = {"PATH": f"{cluster.folder}:{os.environ['PATH']}"}
    job = Job(cluster.hosts.command(0, cluster.program, *words, *command), tmp_path / "log", **path)
    cluster.started.append(job.process)
    return job


def test_ranks_of_other_hosts_go_on_when_one_dies(make_cluster, tmp_path: Path) -> None:  # noqa: F811
    cluster = make_cluster(3)
    job = start(
        cluster, tmp_path, "-np", "4", "--min-np", "2", "-H", cluster.slots(1, 2, 1),
        steps=40, pause=0.05,
    )  # fmt: skip
    job.wait_for_step(5)
    victim = next(line.process for line in job.lines("begins") if line.rank == 2)
    os.kill(victim, signal.SIGKILL)
    output = job.end_well(steps=40, ranks=3)
    assert "rank 2 on" in output


def test_a_rank_that_dies_while_a_link_is_down_is_the_only_one_lost(
    make_cluster,  # noqa: F811
    tmp_path: Path,
) -> None:
    cluster = make_cluster(2)
    job = start(
        cluster, tmp_path, "-np", "4", "--min-np", "2", "-H", cluster.slots(2, 2),
        steps=60, pause=0.05,
    )  # fmt: skip
    job.wait_for_step(5)
    victim = next(line.process for line in job.lines("begins") if line.rank == 0)
    cluster.hosts.unplug(1)
    os.kill(victim, signal.SIGKILL)
    time.sleep(0.5)
    cluster.hosts.plug(1)
    job.end_well(steps=60, ranks=3)


def test_ranks_start_on_a_host_that_the_script_names_later(
    make_cluster,  # noqa: F811
    tmp_path: Path,
    script: Script,  # noqa: F811
) -> None:
    cluster = make_cluster(2)
    script.hosts(f"{cluster.hosts.ipv4(0)}:1")
    job = start(
        cluster, tmp_path, "-np", "1", "--min-np", "1", "--host-discovery-script",
        str(script.path), steps=100, pause=0.05,
    )  # fmt: skip
    job.wait_for_step(3)
    script.hosts(f"{cluster.hosts.ipv4(0)}:1", f"{cluster.hosts.ipv4(1)}:2")
    job.end_well(steps=100, ranks=3)


PORT = 4567


def join(cluster: Cluster, tmp_path: Path, slots: int) -> subprocess.Popen[bytes]:
    """An agent of host 1, which no list names, joins over the network."""
    words = ["agent", "--join", f"{cluster.hosts.ipv4(0)}:{PORT}", "--key-file",
             str(tmp_path / "key"), "--host", "spot", "--slots", str(slots)]  # fmt: skip
    agent = subprocess.Popen(
        cluster.hosts.command(1, cluster.program, *words), stdin=subprocess.DEVNULL
    )
    cluster.started.append(agent)
    return agent


def test_one_side_of_a_split_network_goes_on_and_the_other_stops(
    make_cluster,  # noqa: F811
    tmp_path: Path,
) -> None:
    cluster = make_cluster(2)
    (tmp_path / "key").write_text(secrets.token_hex(32) + "\n")
    (tmp_path / "key").chmod(0o600)
    job = start(
        cluster, tmp_path, "-np", "3", "--min-np", "1", "-H", f"{cluster.hosts.ipv4(0)}:1",
        "--listen", f"{cluster.hosts.ipv4(0)}:{PORT}", "--key-file", str(tmp_path / "key"),
        steps=600, pause=0.05,
    )  # fmt: skip
    agent = join(cluster, tmp_path, 2)
    job.wait_for_step(5)
    there = {line.process for line in job.lines("begins") if line.rank > 0}
    assert len(there) == 2
    # A cable that is out for a moment changes nothing.
    cluster.hosts.unplug(1)
    time.sleep(1)
    cluster.hosts.plug(1)
    job.wait_for_step(max(line.step for line in job.lines()) + 5)
    assert {line.size for line in job.lines()} == {3}
    # One that stays out parts the job.
    cluster.hosts.silence(1)
    job.wait_for(lambda lines: any(line.size == 1 for line in lines), "term of the other side")
    parted = min(line.when for line in job.lines() if line.size == 1)
    assert agent.wait(LIMIT_S) != 0
    output = job.end_well(steps=600, ranks=1)
    assert "spot is lost" in output
    later = {line.process for line in job.lines("begins", "did") if line.when > parted}
    assert not later & there
    assert not any(Path(f"/proc/{process}").exists() for process in there)
