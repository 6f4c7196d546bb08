# SPDX-License-Identifier: Apache-2.0
"""bench/torch: both sides give the same answers, and its tables."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import environment

pytest.importorskip("torch", reason="missing tool: torch")

LIMIT_S = 240


def test_both_sides_agree_and_are_in_the_tables(source_root: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(source_root / "bench" / "torch"), "--only", "steps,allreduce",
         "--models", "many,conv", "--sizes", "8,65536", "--lives", "2", "--rounds", "1",
         "--steps", "2", "--table", str(tmp_path / "table"), "--json", str(tmp_path / "rows")],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "table").read_text() == done.stdout
    steps, sums = done.stdout.split("\n\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in steps.splitlines()[2:]]
    assert [row[0] for row in rows] == ["many", "conv"]
    assert all(float(row[1]) > 0 and float(row[-1]) <= 1e-5 for row in rows)
    times = json.loads((tmp_path / "rows").read_text())
    assert [row["model"] for row in times] == ["many", "conv"]
    assert all(row[f"{way}_ms"] > 0 for row in times for way in ("none", "gloo", "rueda"))
    assert re.findall(r"^\| (\d+) \|", sums, re.M) == ["8", "65536"]


def test_the_start_is_timed_by_two_clocks(source_root: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(source_root / "bench" / "torch"), "--only", "start", "--rounds", "1"],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"ranks: (\d) \| (\d+) ms, at most \d+; of the CPU (\d+) \|", done.stdout)
    assert [row[0] for row in rows] == ["1", "2"], done.stdout
    assert all(int(number) > 0 for row in rows for number in row[1:]), done.stdout


def test_the_cost_of_repair_has_an_interval(source_root: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(source_root / "bench" / "torch"), "--only", "repair", "--models",
         "many", "--lives", "1", "--rounds", "6", "--steps", "2"],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    number = r"(-?[\d.]+)"
    row = rf"^\| many \| {number} \| {number} \| {number} \| {number} to {number} \| (\w+) \|$"
    found = re.search(row, done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    without, with_it, over, low, high = (float(part) for part in found.groups()[:5])
    assert without > 0 and with_it > 0 and low <= over <= high
    assert found[6] in ("ok", "above", "unclear")


def test_what_it_does_not_know_is_refused(source_root: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(source_root / "bench" / "torch"), "--models", "vgg"],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    assert done.returncode == 2
    assert "vgg is none of mlp, transformer, conv, many" in done.stderr
