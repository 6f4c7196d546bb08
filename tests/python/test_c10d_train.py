# SPDX-License-Identifier: Apache-2.0
"""DDP, FSDP and the rest on Rueda, under its launcher and torch's, and what a death does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from c10d_cases import run_ranks
from ranks import Done, environment, program

torch = pytest.importorskip("torch", reason="missing tool: torch")

LIMIT_S = 170

# FSDP2 and its checkpoints are there since torch 2.6.
WAYS = 11 if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 6) else 7


def launch(*command: str) -> Done:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_two_ranks_train_as_on_gloo(need_tool: Callable[[str], str], tmp_path: Path) -> None:
    torchrun = need_tool("torchrun")
    script = program("c10d_train.py")
    # Torch looks for mistakes in what the ranks do, and so does the library.
    words = [script, str(tmp_path), "detail"]
    done = launch(torchrun, "--standalone", "--nproc-per-node", "2", *words)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count(f"trained {WAYS}") == 2


def test_four_ranks_train_as_on_gloo(need_tool: Callable[[str], str], tmp_path: Path) -> None:
    script = program("c10d_train.py")
    done = launch(need_tool("ruedarun"), "-np", "4", sys.executable, script, str(tmp_path))
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count(f"trained {WAYS}") == 4


@pytest.mark.parametrize("where", ["barrier", "backward", "any source", "fsdp"])
def test_a_dead_rank_is_named(where: str) -> None:
    if where == "fsdp" and WAYS < 11:
        pytest.skip("FSDP2 came with torch 2.6")
    done = run_ranks(program("c10d_die.py"), where, size=3)
    assert done[1].returncode == -9
    for rank in (0, 2):
        assert done[rank].returncode == 3, done[rank].stderr[-3000:]
        assert "rank 1" in done[rank].stdout, done[rank].stdout
