# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs on several hosts: network namespaces, and a stand-in for ssh."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from test_elastic import PROGRAM, Job, Script, script  # noqa: F401 -- script is a fixture
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
