# SPDX-License-Identifier: Apache-2.0
"""The example for Keras, as users run it, on each back end; and what the docs show."""

from __future__ import annotations

import importlib.util
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from rank_cases import run_job
from ranks import environment

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = str(ROOT / "examples" / "keras" / "digits.py")


def need(*tools: str) -> None:
    for tool in tools:
        if importlib.util.find_spec(tool) is None:
            pytest.skip(f"missing tool: {tool}")


@pytest.mark.parametrize("back_end", ["torch", "jax", "tensorflow"])
def test_digits_are_learned_on_every_back_end(back_end: str, tmp_path: Path) -> None:
    need("keras", "sklearn", back_end)
    # With half of the pictures each for 4 epochs, or with all of them for half of the epochs.
    more = ["--whole"] if back_end == "torch" else []
    done = run_job(
        EXAMPLE, "--epochs", "4", "--folder", str(tmp_path), *more, KERAS_BACKEND=back_end,
        CUDA_VISIBLE_DEVICES="", limit_s=400,
    )  # fmt: skip
    assert [one.returncode for one in done] == [0, 0], done[0].stderr + done[1].stderr
    found = re.search(
        rf"2 workers on {back_end}, (\d+) steps, .* s: ([\d.]+) % of 360", done[0].stdout
    )
    assert found is not None, done[0].stdout
    pictures, batch = 1436, 32
    assert int(found.group(1)) == (
        2 * math.ceil(pictures / batch) if more else 4 * math.ceil(pictures / 2 / batch)
    )
    assert float(found.group(2)) >= 75
    assert done[1].stdout == ""
    assert (tmp_path / "digits.keras").exists()
    if all(importlib.util.find_spec(tool) for tool in ("tensorflow", "tensorboard")):
        assert list((tmp_path / "logs").glob("train/events*"))


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    need("keras", "torch")
    page = (ROOT / "docs" / "keras.md").read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert found is not None
    program = tmp_path / "page.py"
    program.write_text(found.group(1))
    done = run_job(str(program), KERAS_BACKEND="torch")
    assert [one.returncode for one in done] == [0, 0], done[0].stderr + done[1].stderr
    assert re.fullmatch(r"loss \d\.\d{3}\n", done[0].stdout), done[0].stdout


def test_an_elastic_training_goes_on_and_begins_again_from_its_copy(
    need_tool: Callable[[str], str], tmp_path: Path
) -> None:
    need("keras", "sklearn", "torch")
    script = str(ROOT / "examples" / "elastic" / "keras_digits.py")
    said = []
    for size, more in ((2, ["--epochs", "4", "--kill", "1:0"]), (1, ["--epochs", "5"])):
        done = subprocess.run(
            [need_tool("ruedarun"), "-np", str(size), "--min-np", "1", "--max-np", "2",
             "-H", f"localhost:{size}", sys.executable, script, "--to", str(tmp_path), *more],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400,
            env=environment(KERAS_BACKEND="torch", CUDA_VISIBLE_DEVICES=""),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    sizes = re.findall(r"epoch (\d+): (\d) workers, loss", said[0])
    assert sizes == [("1", "2"), ("2", "1"), ("3", "1"), ("4", "1")]
    assert "goes on from epoch 4" in said[1]
    found = re.search(r"at the end: ([\d.]+) % of 360 pictures are right", said[1])
    assert found is not None and float(found.group(1)) >= 75, said[1]
