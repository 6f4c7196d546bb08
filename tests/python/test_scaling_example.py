# SPDX-License-Identifier: Apache-2.0
"""The example that measures scaling and predicts it, as users run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Callable

import pytest
from ranks import environment

torch = pytest.importorskip("torch", reason="missing tool: torch")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "scaling"
LIMIT_S = 600


def test_scaling_is_measured_and_predicted(need_tool: Callable[[str], str], tmp_path: Path) -> None:
    folders = [str(Path(need_tool(name)).parent) for name in ("rueda", "ruedarun")]
    plot, rows = tmp_path / "scaling.svg", tmp_path / "rows.json"
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "scaling.py"), "--ranks", "1,2", "--batch", "2",
         "--side", "32", "--steps", "2", "--turns", "2", "--plot", str(plot),
         "--json", str(rows)],
        capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
        env=environment(PATH=os.pathsep.join([*folders, os.environ["PATH"]])),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(rows.read_text())
    assert found["parameters"] == 11689512  # ResNet-18
    assert [row["ranks"] for row in found["rows"]] == [1, 2]
    for row in found["rows"]:
        assert row["measured_ms"] > 0
        assert row["step_ms"] >= row["compute_ms"] > 0
    assert ElementTree.fromstring(plot.read_text()).tag.endswith("svg")


def test_a_recorded_model_has_all_gradients_in_their_order(
    need_tool: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from record_model import record

    net = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2, bias=False)
    )
    net[0].bias.requires_grad_(False)
    path = tmp_path / "small.model"
    record(path, net, lambda: net(torch.ones(3, 4)).sum(), batch=3, name="two layers")
    tensors = [line.split()[1:3] for line in path.read_text().splitlines() if "tensor" in line]
    assert tensors == [["2.weight", "2x8"], ["0.weight", "8x4"]]
    done = subprocess.run(
        [need_tool("rueda"), "sim", "--model", str(path), "--hosts", "2"],
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "model       two-layers, 2 tensors" in done.stdout
    assert all(one.grad is None for one in net.parameters())
