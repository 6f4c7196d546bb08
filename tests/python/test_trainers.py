# SPDX-License-Identifier: Apache-2.0
"""Lightning, accelerate and the HF Trainer on the back end rueda; see `make trainers`."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from ranks import environment

SCRIPT = str(Path(__file__).resolve().parents[2] / "examples" / "pytorch" / "trainers.py")
LIMIT_S = 300


@pytest.mark.parametrize(
    ("way", "launcher"),
    [
        ("lightning", ["ruedarun", "-np", "2", sys.executable]),
        ("accelerate", ["torchrun", "--standalone", "--nproc-per-node", "2"]),
        ("transformers", ["ruedarun", "-np", "2", sys.executable]),
    ],
)
def test_trains_on_both_back_ends_alike(
    need_tool: Callable[[str], str], way: str, launcher: list[str]
) -> None:
    if importlib.util.find_spec(way) is None:
        pytest.skip(f"{way} is not part of `make test`; `make trainers` installs it")
    losses = []
    for backend in ("rueda", "gloo"):
        done = subprocess.run(
            [need_tool(launcher[0]), *launcher[1:], SCRIPT, way, "--backend", backend],
            capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        found = re.search(rf"{way}: 2 ranks, back end (\w+): loss ([\d.]+)", done.stdout)
        assert found is not None and found.group(1) == backend, done.stdout
        losses.append(float(found.group(2)))
    assert abs(losses[0] - losses[1]) < 0.001, losses
    assert losses[0] < 0.1
