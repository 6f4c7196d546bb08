# SPDX-License-Identifier: Apache-2.0
"""rueda.torch by NCCL on a real GPU; what each rank does is in nccl_rank.py.

Without a GPU, or without NCCL, everything here is skipped. The ranks share one GPU: each has
an NCCL_HOSTID of its own, so NCCL goes over sockets.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from ranks import Done, environment, run_all

torch = pytest.importorskip("torch", reason="missing tool: torch")

LIMIT_S = 180
USED = "carries tensors on GPUs between"
CASES = (
    "every_type_and_reduction",
    "every_kind",
    "many_and_large",
    "an_optimizer",
)

pytestmark = pytest.mark.skipif(
    not (torch.cuda.is_available() and torch.cuda.nccl.is_available([])),
    reason="this machine has no GPU with NCCL for torch",
)


def start(case: str, size: int, **more: str) -> list[Done]:
    variables = {
        "RUEDA_SIZE": str(size), "RUEDA_LOCAL_SIZE": str(size),
        "RUEDA_JOB": f"nccl-{case}-{os.getpid()}", "RUEDA_NCCL": "always",
        "RUEDA_LOG_LEVEL": "debug", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1",
        **more,
    }  # fmt: skip
    command = [sys.executable, str(Path(__file__).parent / "nccl_rank.py"), case]
    return run_all(
        [command] * size,
        [
            environment(**variables, RUEDA_RANK=str(rank), RUEDA_LOCAL_RANK=str(rank),
                        NCCL_HOSTID=f"host{rank}")
            for rank in range(size)
        ],
        LIMIT_S,
    )  # fmt: skip


def check(done: list[Done], is_used: bool = True) -> None:
    for one in done:
        assert one.returncode == 0, one.stdout + one.stderr
        assert (USED in one.stderr) == is_used, one.stderr


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_use_nccl(case: str) -> None:
    check(start(case, 2))


def test_what_nccl_lacks_goes_another_way() -> None:
    check(start("what_nccl_lacks", 2), is_used=False)


def test_ranks_that_share_a_gpu_do_without_nccl() -> None:
    check(start("every_kind", 2, RUEDA_NCCL="auto"), is_used=False)


def test_sets_that_overlap_do_not_hang() -> None:
    check(start("sets_that_overlap", 3, RUEDA_DYNAMIC_SETS="1"))


def test_the_metrics_of_the_gpu_are_told() -> None:
    done = start("metrics", 1)
    assert done[0].returncode == 0, done[0].stdout + done[0].stderr


def test_survivors_of_a_death_use_nccl_again() -> None:
    done = start("a_death", 3)
    assert done[1].returncode == -signal.SIGKILL, done[1].stderr
    for one in (done[0], done[2]):
        assert one.returncode == 0, one.stdout + one.stderr
        assert "AGAIN" in one.stdout
        assert one.stderr.count(USED) == 2, one.stderr
