# SPDX-License-Identifier: Apache-2.0
"""bench/torch: both sides give the same answers, and its tables."""

from __future__ import annotations

import json
import math
import re
import statistics
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Callable

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
    for row in rows:
        low, high = map(float, row[-2].split(" to "))
        assert low <= float(row[-3]) <= high or math.isinf(high), row
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


def test_ddp_trains_on_both_back_ends(
    source_root: Path, need_tool: Callable[[str], str]
) -> None:
    done = subprocess.run(
        [need_tool("ruedarun"), "-np", "2", sys.executable, str(source_root / "bench" / "ddp"),
         "--models", "many,conv", "--turns", "3", "--steps", "1"],
        capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
        env=environment(GLOO_SOCKET_IFNAME="lo"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = re.findall(
        r"(\w+) +rueda +([\d.]+) ms  gloo +([\d.]+) ms  ratio ([\d.]+) \(([\d.]+) to ([\d.]+)\)",
        done.stdout,
    )
    assert [row[0] for row in rows] == ["many", "conv"], done.stdout
    for row in rows:
        rueda_ms, gloo_ms, ratio, low, high = map(float, row[1:])
        assert rueda_ms > 0 and gloo_ms > 0 and low <= ratio <= high


def test_an_interval_is_that_of_the_figure(source_root: Path) -> None:
    place = spec_from_file_location("medians", source_root / "bench" / "medians.py")
    assert place is not None and place.loader is not None
    medians = module_from_spec(place)
    place.loader.exec_module(medians)
    assert medians.interval([3.0] * 9, statistics.median) == (3.0, 3.0)
    low, high = medians.interval([float(i) for i in range(101)], statistics.median)
    # Of the median of 101 numbers 0 to 100, the standard deviation is about 5.
    assert 35 < low < 45 and 55 < high < 65, (low, high)
