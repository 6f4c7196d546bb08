# SPDX-License-Identifier: Apache-2.0
"""examples/pytorch/ddp.py, on both back ends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from ranks import environment

pytest.importorskip("torch", reason="missing tool: torch")

SCRIPT = str(Path(__file__).resolve().parents[2] / "examples" / "pytorch" / "ddp.py")


def test_ddp_learns_the_same_on_both_back_ends(need_tool: Callable[[str], str]) -> None:
    losses = []
    for backend in ("rueda", "gloo"):
        done = subprocess.run(
            [need_tool("ruedarun"), "-np", "2", sys.executable, SCRIPT, "--backend", backend],
            capture_output=True, text=True, timeout=120, env=environment(),
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        found = re.search(r"2 ranks, back end (\w+): loss ([\d.]+)", done.stdout)
        assert found is not None and found.group(1) == backend, done.stdout
        losses.append(float(found.group(2)))
    assert abs(losses[0] - losses[1]) < 0.001
    assert losses[0] < 0.1
