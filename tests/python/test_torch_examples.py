# SPDX-License-Identifier: Apache-2.0
"""The examples for PyTorch, run by several ranks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rank_cases import run_job

ROOT = Path(__file__).resolve().parents[2]


def output_of(name: str, *words: str, size: int = 2) -> str:
    """What rank 0 says, if all ranks end well."""
    pytest.importorskip("torch", reason="missing tool: torch")
    done = run_job(str(ROOT / "examples" / "pytorch" / name), *words, size=size)
    assert [one.returncode for one in done] == [0] * size, "".join(one.stderr for one in done)
    assert [one.stdout for one in done[1:]] == [""] * (size - 1)
    return done[0].stdout


@pytest.mark.parametrize(("size", "words"), [(2, []), (2, ["--own-sets"]), (4, ["--own-sets"])])
def test_ranks_of_different_tasks_train_one_trunk(size: int, words: list[str]) -> None:
    output = output_of("multi_task.py", *words, size=size)
    losses = re.search(r"regression ([\d.]+), classes ([\d.]+)$", output.strip())
    assert losses is not None, output
    # Guessing would give 4 and 0.69.
    assert float(losses.group(1)) < 1.0
    assert float(losses.group(2)) < 0.35


def test_ranks_that_are_done_join() -> None:
    lines = output_of("uneven_join.py").splitlines()
    assert [line.split(",")[0] for line in lines[:2]] == [
        "rank 0: 100 batches",
        "rank 1: 120 batches",
    ]
    assert all(float(line.rsplit(" ", 1)[1]) < 0.05 for line in lines[:2]), lines
    assert lines[2] == "rank 1 joined last"


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
    program = tmp_path / "page.py"
    program.write_text(re.search(r"^```python\n(.*?)^```$", page, re.M | re.S).group(1))
    assert re.fullmatch(r"loss \d\.\d{3}\n", output_of(str(program)))
