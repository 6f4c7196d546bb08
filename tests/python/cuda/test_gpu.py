# SPDX-License-Identifier: Apache-2.0
"""rueda.torch on a real GPU; what each rank does is in gpu_rank.py.

Without a GPU everything here is skipped. Two ranks share one GPU.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from ranks import environment

torch = pytest.importorskip("torch", reason="missing tool: torch")

LIMIT_S = 300
CASES = (
    "every_type_and_reduction",
    "every_kind",
    "a_stream_that_is_late",
    "many_and_large",
    "a_capture_is_refused",
    "mixed_with_the_cpu",
    "an_optimizer",
    "bundles",
    "join",
)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU for torch")
@pytest.mark.parametrize("transport", ["auto", "tcp"])
@pytest.mark.parametrize("case", CASES)
def test_two_ranks_on_one_gpu(case: str, transport: str, need_tool: Callable[[str], str]) -> None:
    command = [need_tool("ruedarun"), "-np", "2", sys.executable,
               str(Path(__file__).parent / "gpu_rank.py"), case]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S,
        env=environment(RUEDA_TRANSPORT=transport),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU for torch")
def test_torch_distributed_on_one_gpu(need_tool: Callable[[str], str]) -> None:
    command = [need_tool("ruedarun"), "-np", "2", sys.executable,
               str(Path(__file__).parent / "gpu_c10d.py")]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, env=environment()
    )
    assert done.returncode == 0, done.stdout + done.stderr
