# SPDX-License-Identifier: Apache-2.0
"""The examples for TensorFlow, as users run them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from ranks import Done, environment

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("missing tool: tensorflow", allow_module_level=True)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "tensorflow"
LIMIT_S = 200


@pytest.fixture
def run(need_tool: Callable[[str], str]) -> Callable[..., Done]:
    """A function that runs an example on two workers."""
    program = need_tool("ruedarun")

    def call(*words: str) -> Done:
        script = [sys.executable, str(EXAMPLES / words[0]), *words[1:]]
        return subprocess.run(
            [program, "-np", "2", *script], capture_output=True, text=True, timeout=LIMIT_S,
            env=environment(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES=""),
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return call


def test_digits_are_learned_with_a_tape_and_training_goes_on(run, tmp_path: Path) -> None:
    if importlib.util.find_spec("sklearn") is None:
        pytest.skip("missing tool: scikit-learn")
    right = []
    for epochs in ("3", "30"):
        done = run("digits.py", "--epochs", epochs, "--folder", str(tmp_path))
        assert done.returncode == 0, done.stderr
        found = re.search(r"2 workers: ([\d.]+)% of 360 pictures", done.stdout)
        assert found is not None, done.stdout
        right.append(float(found.group(1)))
        assert ("goes on from epoch 3" in done.stdout) == (epochs == "30"), done.stdout
        # Written by rank 0 alone: each epoch once, of which the last two are kept.
        kept = sorted(path.stem for path in tmp_path.glob("*.index"))
        assert kept == sorted(f"ckpt-{int(epochs) - i}" for i in range(2))
    assert right[1] >= 90 and right[1] > right[0], right


def test_a_line_is_fitted_in_a_graph(run) -> None:
    done = run("graph.py")
    assert done.returncode == 0, done.stderr
    assert "2 workers: y = 3.00 x + 2.00" in done.stdout
    assert "all workers agree" in done.stdout
