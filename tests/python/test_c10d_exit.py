# SPDX-License-Identifier: Apache-2.0
"""How programs end that use the back end of torch.distributed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ranks import environment, run_all

torch = pytest.importorskip("torch", reason="missing tool: torch")

LIMIT_S = 120
# A third of them aborted when Python ended the thread that completes futures; fewer did so
# beside others.
RUNS = 12


def test_a_program_may_end_while_futures_are_completed(source_root: Path) -> None:
    program = source_root / "tests" / "python" / "programs" / "c10d_exit.py"
    for _ in range(RUNS):
        (done,) = run_all([[sys.executable, str(program)]], [environment()], LIMIT_S)
        assert (done.returncode, done.stderr) == (0, "")
