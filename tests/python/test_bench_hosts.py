# SPDX-License-Identifier: Apache-2.0
"""The benchmark of several hosts, bench/hosts: that it works, not how fast."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_S = 120


def test_all_parts_are_measured_and_right(need_tool, source_root: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("network namespaces take root")
    for tool in ("ip", "unshare", "taskset", "iperf3", "mpirun.openmpi"):
        need_tool(tool)
    file = tmp_path / "rows.json"
    done = subprocess.run(
        [sys.executable, str(source_root / "bench" / "hosts"), "--rueda", need_tool("rueda"),
         "--algos", "ring,auto", "--min", "64k", "--ring-sizes", "64k", "--max", "64k",
         "--rounds", "1", "--turns", "1", "--step=--tensors 20 --rounds 3 --large 0",
         "--json", str(file)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("very answer was checked") == 2
    rows = json.loads(file.read_text())
    (pairs,) = rows["pairs"]
    assert (pairs["bytes"], pairs["ranks"], pairs["used"]) == (65536, 4, "shm+tcp")
    assert pairs["ratio"].keys() == {"auto", "openmpi"}
    assert min(pairs["ratio"].values()) > 0
    assert len(rows["step"]) == 2
    (ring,) = rows["ring"]
    assert ring["bytes"] == 65536
    for way in ("alike", "plain"):
        assert ring[f"{way}_gbs"] > 0
        assert ring[f"ratio_{way}"] == pytest.approx(ring["link_gbs"] / ring[f"{way}_gbs"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pears"], "unknown part 'pears'; there are pairs, ring"),
        (["--rueda", "/nowhere/rueda"], "/nowhere/rueda"),
    ],
    ids=["part", "program"],
)
def test_a_mistake_is_named(source_root: Path, words: list[str], expected: str) -> None:
    done = subprocess.run(
        [sys.executable, str(source_root / "bench" / "hosts"), *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode != 0
    assert done.stdout == ""
    assert expected in done.stderr
