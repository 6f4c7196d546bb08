# SPDX-License-Identifier: Apache-2.0
"""The command `rueda sim`, run as a user would."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, Callable

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT_S = 300

LARGE = ["--hosts", "128", "--ranks-per-host", "4", "--link", "25gbit,10us", "--ranks", "512",
         "--algo", "auto"]  # fmt: skip
SMALL = ["--hosts", "4", "--ranks-per-host", "2", "--link", "25gbit,10us"]


@pytest.fixture
def sim(need_tool: Callable[[str], str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A function that runs `rueda sim` with these words and returns what came."""
    program = need_tool("rueda")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, "sim", *words], capture_output=True, text=True, timeout=LIMIT_S
        )

    return run


@pytest.fixture
def rows(sim, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """The rows of a run that must end well."""

    def run(*words: str) -> list[dict[str, Any]]:
        path = tmp_path / "rows.json"
        done = sim(*words, "--json", str(path))
        assert done.returncode == 0, done.stderr
        return json.loads(path.read_text())["rows"]

    return run


def test_each_number_of_ranks_has_a_row_for_each_algorithm(rows) -> None:
    found = rows("--model", "vgg16", *SMALL)
    assert [row["ranks"] for row in found if row["algo"] == "auto"] == [1, 2, 4, 8]
    assert {row["algo"] for row in found if row["ranks"] == 8} == {
        "auto", "hier", "ring", "halving_doubling", "doubling"}  # fmt: skip
    # Inside one host there is no hierarchy, and one rank has nothing to choose.
    assert "hier" not in {row["algo"] for row in found if row["ranks"] == 2}
    assert len([row for row in found if row["ranks"] == 1]) == 1
    for row in found:
        assert row["status"] == "success"
        assert row["step_ms"] >= row["bound_ms"]
        assert row["efficiency"] == pytest.approx(1 - row["exposed_ms"] / row["step_ms"])


def test_the_same_seed_is_the_same_run_however_many_threads(rows) -> None:
    words = ["--model", "resnet50", *SMALL, "--jitter", "10", "--steps", "3"]
    one, several = rows(*words, "--jobs", "1"), rows(*words, "--jobs", "4")
    assert [row["digest"] for row in one] == [row["digest"] for row in several]
    other = rows(*words, "--seed", "2")
    assert [row["digest"] for row in one] != [row["digest"] for row in other]


def test_the_table_and_the_plot_show_what_was_measured(sim, tmp_path: Path) -> None:
    measured = tmp_path / "measured"
    measured.write_text("# ranks, ms\n1 292.3\n8 300\n")
    plot = tmp_path / "plot.svg"
    done = sim("--model", "resnet50", *SMALL, "--algo", "auto", "--measured", str(measured),
               "--plot", str(plot))  # fmt: skip
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.split()[0] == "8")
    assert "300.000" in line and line.endswith("-2.6 %"), done.stdout
    root = ElementTree.fromstring(plot.read_text())
    shapes = [element.tag.rpartition("}")[2] for element in root]
    assert shapes.count("polyline") == 2  # the bound and one algorithm
    assert shapes.count("circle") == 3  # two points and their name

    measured.write_text("8\n")
    assert "line 1" in sim("--model", "resnet50", *SMALL, "--measured", str(measured)).stderr


def test_a_model_of_ones_own(rows, sim, tmp_path: Path) -> None:
    """Its step is what the formula of a ring says: 2 (n - 1) / n of 40 MB, at 1 GB/s."""
    model = tmp_path / "mine.model"
    model.write_text("compute 5ms\nforward 0\ntensor w 10000000\n")
    found = rows("--model", str(model), "--hosts", "8", "--link", "1GB/s,1us", "--algo", "ring",
                 "--ranks", "8", "--arithmetic", "100GB/s", "--overhead", "0us")  # fmt: skip
    assert found[0]["step_ms"] == pytest.approx(5 + 2 * 7 / 8 * 40, rel=0.05)

    model.write_text("compute 5ms\ntensor w 0x3\n")
    done = sim("--model", str(model))
    assert done.returncode == 2 and "line 2" in done.stderr
    model.write_text("tensor w 3\n")
    done = sim("--model", str(model))
    assert done.returncode == 2 and "--compute-ms" in done.stderr


def test_a_topology_file_says_all(rows, sim, tmp_path: Path) -> None:
    path = tmp_path / "racks"
    path.write_text("hosts 8\nhosts-per-rack 2\noversubscription 8\n"
                    "uplink latency 10us bandwidth 25Gbit/s\n")  # fmt: skip
    words = ["--model", "vgg16", "--algo", "auto", "--ranks", "8"]
    racks = rows(*words, "--topology", str(path))[0]
    flat = rows(*words, "--hosts", "8", "--link", "25gbit,10us")[0]
    assert racks["step_ms"] > 1.5 * flat["step_ms"]
    assert racks["step_ms"] >= racks["bound_ms"] > flat["bound_ms"]
    done = sim(*words, "--topology", str(path), "--hosts", "8")
    assert done.returncode == 2 and "leave these out" in done.stderr


def test_bad_days(sim, rows) -> None:
    words = ["--model", "resnet50", *SMALL, "--algo", "auto", "--ranks", "8"]
    usual = rows(*words)[0]["step_ms"]
    slow = rows(*words, "--straggler", "3:1.5")[0]["step_ms"]
    assert slow == pytest.approx(1.5 * usual, rel=0.01)
    # A host hears nothing while the gradients of the second step travel; the first one does
    # not count.
    heavy = ["--model", "vgg16", *SMALL, "--algo", "auto", "--ranks", "8"]
    usual = rows(*heavy)[0]["step_ms"]
    held_up = rows(*heavy, "--unplug", "2@600ms-2s")[0]
    assert held_up["status"] == "success"
    assert held_up["step_ms"] > usual + 500, (held_up, usual)
    done = sim(*words, "--kill", "3@250ms")
    assert done.returncode == 0, done.stderr
    assert '7 ranks end with "a peer left the job"' in done.stdout


def test_models_are_listed_and_shown(sim, tmp_path: Path) -> None:
    listed = [line.split()[0] for line in sim("--list-models").stdout.splitlines()]
    assert listed == ["resnet50", "resnet101", "inception3", "vgg16", "bert-large"]
    for name in listed:
        shown = sim("--model", name, "--show-model").stdout
        assert shown == (ROOT / "src" / "predict" / "models" / f"{name}.model").read_text()
    done = sim("--model", "resnet5")
    assert done.returncode == 2 and "did you mean 'resnet50'?" in done.stderr


def test_the_models_are_what_the_architectures_say() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "predict-models"), "--check"],
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("model", ["resnet101", "inception3", "vgg16"])
def test_512_ranks_scale_with_fp16_on_the_wire(rows, model: str) -> None:
    """128 hosts of 4 ranks at 25 Gbit/s: docs/scaling.md has the whole comparison.

    test_sim_bound.py has the same without compression.
    """
    row = rows("--model", model, *LARGE, "--compression", "fp16")[0]
    assert row["efficiency"] > 0.9, row
