# SPDX-License-Identifier: Apache-2.0
"""The back end between hosts, with a key that only torch's store carries."""

from __future__ import annotations

import sys
from typing import Callable

import pytest
from cluster import Hosts
from ranks import environment, program, run_all

pytest.importorskip("torch", reason="missing tool: torch")

LIMIT_S = 150


def test_two_hosts_train_by_the_back_end_and_by_the_optimizer(
    make_hosts: Callable[[int], Hosts],
) -> None:
    hosts = make_hosts(2)
    layout = [0, 0, 1]
    done = run_all(
        [hosts.command(host, sys.executable, program("torch_on_hosts.py")) for host in layout],
        [
            environment(
                RANK=str(rank), WORLD_SIZE=str(len(layout)), MASTER_ADDR=hosts.ipv4(0),
                MASTER_PORT="4000", GLOO_SOCKET_IFNAME="lo", RUEDA_LOG_LEVEL="debug",
            )
            for rank in range(len(layout))
        ],
        LIMIT_S,
    )  # fmt: skip
    for rank, one in enumerate(done):
        assert one.returncode == 0, one.stderr[-4000:]
        assert f"rank {rank} of 3, {layout.count(layout[rank])} on this host" in one.stdout
        assert "gradients lie in private memory: the ranks are on several hosts" in one.stderr
