# SPDX-License-Identifier: Apache-2.0
"""Ranks that map each other's memory of one real GPU; what they do is in ipc_rank.py.

Without a GPU everything here is skipped.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ranks import environment, free_port

torch = pytest.importorskip("torch", reason="missing tool: torch")

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="this machine has no GPU for torch"
)
LIMIT_S = 300


def run(case: str, ranks: int, **settings: str) -> list[tuple[int, str]]:
    """The code and the output of each rank."""
    port = str(free_port())
    command = [sys.executable, str(Path(__file__).parent / "ipc_rank.py"), case]
    children = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment(
                RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank),
                LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                RUEDA_LOG_LEVEL="trace", **settings,
            ),
        )
        for rank in range(ranks)
    ]  # fmt: skip
    outputs = [child.communicate(timeout=LIMIT_S)[0] for child in children]
    return [(child.returncode, output) for child, output in zip(children, outputs)]


def tail(output: str) -> str:
    lines = [line for line in output.splitlines() if "trace:" not in line]
    return "\n".join(lines[-30:])


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("case", ["every_length", "other_kinds", "memory_comes_and_goes"])
def test_results_are_right(case: str, ranks: int) -> None:
    for code, output in run(case, ranks):
        assert code == 0, tail(output)
        assert "runs as mapped" in output
        assert "by way of the host" not in output, tail(output)


@pytest.mark.parametrize(
    "settings",
    [
        {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        {"RUEDA_CUDA_IPC": "0"},
    ],
)
def test_what_cannot_be_mapped_goes_by_way_of_the_host(settings: dict[str, str]) -> None:
    for code, output in run("every_length", 2, **settings):
        assert code == 0, tail(output)
        assert "by way of the host" in output


def test_survivors_of_a_killed_rank_end_with_the_usual_error() -> None:
    codes = run("a_rank_is_killed", 3)
    assert codes[1][0] == -9
    for rank in (0, 2):
        code, output = codes[rank]
        assert code == 0 and "SURVIVED" in output, tail(output)
        assert "rank 1" in output[output.index("SURVIVED") :]
