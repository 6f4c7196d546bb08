# SPDX-License-Identifier: Apache-2.0
"""The examples for PyTorch, as users run them, and what the docs say of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from rank_cases import run_job
from ranks import Done, environment

pytest.importorskip("torch", reason="missing tool: torch")

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "pytorch"
LIMIT_S = 120


@pytest.fixture
def run(need_tool: Callable[[str], str]) -> Callable[..., Done]:
    """A function that runs an example on this many workers."""
    program = need_tool("ruedarun")

    def call(size: int, *words: str) -> Done:
        script = [sys.executable, str(EXAMPLES / words[0]), *words[1:]]
        return subprocess.run(
            [program, "-np", str(size), *script], capture_output=True, text=True,
            timeout=LIMIT_S, env=environment(), stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return call


def test_digits_are_learned_by_two_workers(run) -> None:
    pytest.importorskip("sklearn", reason="missing tool: scikit-learn")
    done = run(2, "digits.py")
    assert done.returncode == 0, done.stderr
    found = re.search(r"2 workers, .* s: ([\d.]+) % of 360 pictures", done.stdout)
    assert found is not None, done.stdout
    assert float(found.group(1)) >= 97
    # The bar moves, and is that of rank 0 alone.
    bars = re.findall(r"\[(\d)\]<stdout>:\[([#.]+)\] +(\d+) %", done.stdout)
    assert {rank for rank, _, _ in bars} == {"0"}
    assert len(bars) >= 30
    assert bars[-1][1:] == ("#" * 30, "100")


def test_digits_work_for_one_worker_and_for_three(run) -> None:
    pytest.importorskip("sklearn", reason="missing tool: scikit-learn")
    for size in (1, 3):
        done = run(size, "digits.py", "--epochs", "2")
        assert done.returncode == 0, done.stderr
        assert f"{size} workers, " in done.stdout


def test_digits_are_learned_although_rank_0_is_killed(need_tool) -> None:
    pytest.importorskip("sklearn", reason="missing tool: scikit-learn")
    script = str(ROOT / "examples" / "elastic" / "pytorch.py")
    done = subprocess.run(
        [need_tool("ruedarun"), "-np", "3", "--min-np", "2", "-H", "localhost:3",
         sys.executable, script, "--epochs", "8", "--kill", "3:0"],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "rank 0 on localhost was killed by signal 9" in done.stderr
    sizes = re.findall(r"epoch (\d+): (\d) workers, loss", done.stdout)
    assert sizes == [(str(epoch), "3" if epoch <= 3 else "2") for epoch in range(1, 9)]
    found = re.search(r"2 workers at the end: ([\d.]+) % of 360 pictures", done.stdout)
    assert found is not None and float(found.group(1)) >= 80, done.stdout


@pytest.mark.parametrize("more", [(), ("--compress", "fp16"), ("--adasum",)])
def test_synthetic_benchmark_gives_its_figures(run, more: tuple[str, ...]) -> None:
    small = ("--batch", "2", "--side", "32", "--warm-up", "1", "--steps", "1", "--turns", "2")
    done = run(2, "synthetic_benchmark.py", *small, *more)
    assert done.returncode == 0, done.stderr
    turns = re.findall(r"turn (\d): [\d.]+ pictures a second and worker", done.stdout)
    assert turns == ["1", "2"]
    assert re.search(r"2 workers: [\d.]+ pictures a second, [\d.]+ each", done.stdout)


def output_of(name: str, *words: str, size: int = 2) -> str:
    """What rank 0 says, if all ranks end well."""
    done = run_job(str(EXAMPLES / name), *words, size=size)
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


def test_the_eight_lines_of_the_readme_are_those_of_the_example() -> None:
    """In the order of their marks, which is that of the page."""
    source = (EXAMPLES / "digits.py").read_text(encoding="utf-8")
    marked = re.findall(r"^ *(.+?)  # \((\d)\)", source, re.M)
    lines = [line for line, _ in sorted(marked, key=lambda pair: pair[1])]
    assert len(lines) == 8
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    block = page[page.index("```python\n") + len("```python\n") :]
    shown = [line for line in block[: block.index("```")].splitlines() if line.strip(". ")]
    assert shown == lines


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
    program = tmp_path / "page.py"
    program.write_text(re.search(r"^```python\n(.*?)^```$", page, re.M | re.S).group(1))
    assert re.fullmatch(r"loss \d\.\d{3}\n", output_of(str(program)))
