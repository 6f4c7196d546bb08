# SPDX-License-Identifier: Apache-2.0
"""The examples that train larger things, each with a small size, as users run them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import environment

pytest.importorskip("torch", reason="missing tool: torch")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIMIT_S = 240


def output_of(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S,
                          env=environment(), stdin=subprocess.DEVNULL)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def run(need_tool):
    """A function that runs an example on two workers and returns what rank 0 printed."""
    program = need_tool("ruedarun")

    def call(name: str, *words: str) -> list[str]:
        script = [sys.executable, str(EXAMPLES / name), *words]
        lines = output_of([program, "-np", "2", *script]).splitlines()
        assert all(line.startswith("[0]<stdout>:") for line in lines), lines
        return [line.partition(":")[2] for line in lines]

    return call


# ---- AlexNet -----------------------------------------------------------------


def test_alexnet_learns_the_pictures_of_a_folder_and_goes_on_from_its_copy(
    run, tmp_path: Path
) -> None:
    pytest.importorskip("PIL", reason="missing tool: pillow")
    folder = tmp_path / "folder"
    made = output_of([sys.executable, str(EXAMPLES / "imagenet" / "make_folder.py"), str(folder),
                      "--classes", "4", "--train", "40", "--val", "7", "--side", "80"])  # fmt: skip
    assert made == f"{folder}: 4 classes, 188 pictures\n"
    names = sorted(one.relative_to(folder).as_posix() for one in folder.glob("val/*/*1.JPEG"))
    assert names == [f"val/n0000000{n}/n0000000{n}_1.JPEG" for n in range(1, 5)]

    copy = tmp_path / "alexnet.pt"
    words = ["imagenet/alexnet.py", str(folder), "--side", "64", "--width", "0.25", "--batch", "8",
             "--rate", "0.005", "--copy", str(copy)]  # fmt: skip
    line = r"epoch (\d): 2 workers, loss ([\d.]+), right ([\d.]+) %, among five 100.0 %"
    first = [re.fullmatch(line, one).groups() for one in run(*words, "--epochs", "2")]
    assert [epoch for epoch, _, _ in first] == ["1", "2"]
    size = copy.stat().st_size
    more = run(*words, "--epochs", "4", "--loaders", "1")
    then = [re.fullmatch(line, one).groups() for one in more]
    assert [epoch for epoch, _, _ in then] == ["3", "4"]
    # Guessing costs 1.39 and is right for 25 %.
    assert float(then[-1][1]) < min(1.0, float(first[0][1]))
    assert float(then[-1][2]) > 60
    assert copy.stat().st_size == size and not copy.with_suffix(".new").exists()


# ---- The language model ------------------------------------------------------

SMALL = ("--steps", "60", "--every", "20", "--batch", "8", "--length", "32", "--width", "32",
         "--blocks", "1", "--warm-up", "10", "--rate", "0.01")  # fmt: skip


def test_a_language_model_goes_on_from_its_copy_to_the_same_figures(run, tmp_path: Path) -> None:
    program = "pytorch/language_model.py"
    whole = run(program, *SMALL)
    copy = ("--copy", str(tmp_path / "model.pt"))
    begun = run(program, *SMALL, *copy, "--stop", "40")
    rest = run(program, *SMALL, *copy)
    assert begun[:2] == whole[:2]
    assert rest[0] == "goes on after step 40"
    assert rest[1:] == whole[2:]
    losses = [float(one) for one in re.findall(r"loss ([\d.]+)", "\n".join(whole))]
    assert losses == sorted(losses, reverse=True) and len(losses) == 3
    found = re.fullmatch(r"2 workers: a letter of the test costs ([\d.]+) bits", rest[2])
    # 24 letters, all of them as likely, would cost 4.6.
    assert float(found.group(1)) < 3.3
    assert re.fullmatch(r"writes: [a-z. ]{80}", rest[3])


def test_a_language_model_reads_the_text_that_it_is_given(run, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("one two three, " * 200)
    lines = run("pytorch/language_model.py", *SMALL, "--text", str(text))
    assert float(re.search(r"costs ([\d.]+) bits", "\n".join(lines)).group(1)) < 0.5
    assert re.fullmatch(r"writes: [ ,ehnortw]{80}", lines[-1])
    assert " two " in lines[-1] and "three" in lines[-1]


# ---- Tasks about texts, and the notebook -------------------------------------


def test_three_tasks_about_texts_are_learned_together(run) -> None:
    lines = run("pytorch/multi_task_text.py")
    found = re.fullmatch(
        r"2 workers: subject ([\d.]+) %, opinion ([\d.]+) %, time ([\d.]+) % of 200 held-out "
        r"sentences are right",
        lines[-1],
    )
    # Guessing would be right for 25, 50 and 33 %.
    assert found is not None and all(float(one) > 90 for one in found.groups()), lines


def test_the_cells_of_the_notebook_run_in_their_order(need_tool, tmp_path: Path) -> None:
    """One after the other in one namespace, from no file, as a kernel does."""
    pytest.importorskip("sklearn", reason="missing tool: scikit-learn")
    need_tool("ruedarun")
    notebook = json.loads((EXAMPLES / "notebook" / "digits.ipynb").read_text(encoding="utf-8"))
    assert all(cell["metadata"] == {} for cell in notebook["cells"])
    cells = ["".join(one["source"]) for one in notebook["cells"] if one["cell_type"] == "code"]
    assert [one["outputs"] for one in notebook["cells"] if one["cell_type"] == "code"] == [
        [] for _ in cells
    ]
    (tmp_path / "cells.json").write_text(json.dumps(cells))
    kernel = (
        "import json\n"
        "for number, cell in enumerate(json.load(open('cells.json'))):\n"
        "    exec(compile(cell, f'<cell {number}>', 'exec'), globals())\n"
    )
    done = subprocess.run([sys.executable, "-c", kernel], capture_output=True, text=True,
                          timeout=LIMIT_S, env=environment(), cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rights = re.findall(r"^rank (\d): ([\d.]+) % of 360 pictures are right$", done.stdout, re.M)
    assert [rank for rank, _ in rights] == ["0", "1"]
    assert all(float(right) > 90 for _, right in rights), done.stdout
    assert re.search(r"^losses:( \d\.\d{3}){10}$", done.stdout, re.M)
    assert "raised here: division by zero" in done.stdout
