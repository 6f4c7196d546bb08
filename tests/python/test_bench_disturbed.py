# SPDX-License-Identifier: Apache-2.0
"""bench/disturbed: thieves take cores away, and its table."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from ranks import environment

LIMIT_S = 120


def bench(source_root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(source_root / "bench" / "disturbed"), *words],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip


def test_both_sides_are_measured_under_thieves(
    source_root: Path, tmp_path: Path, need_tool
) -> None:
    need_tool("mpirun.openmpi")
    done = bench(source_root, "--np", "2", "--sizes", "8,65536", "--rounds", "5", "--share", "0.2",
                 "--rueda", need_tool("rueda"), "--json", str(tmp_path / "rows"))  # fmt: skip
    rows = json.loads((tmp_path / "rows").read_text())
    assert [row["bytes"] for row in rows] == [8, 65536], done.stderr
    for row in rows:
        assert 0 < row["rueda_us"] <= row["rueda_p99_us"]
        assert 0 < row["openmpi_us"] <= row["openmpi_p99_us"]
    # On a busy machine a row may miss the goals.
    assert done.returncode == (0 if all(row["is_good"] for row in rows) else 1)
    assert len(re.findall(r"^\| (?:8|65536) \|.*\| (?:ok|missed) \|$", done.stdout, re.M)) == 2


def test_a_goal_that_is_missed_is_named(source_root: Path, tmp_path: Path) -> None:
    """A stand-in for the measuring program says what it is to say."""
    program = tmp_path / "rueda"
    answer = {"bytes": 4096, "median_us": 2.0, "p99_us": 30.0, "peers": {"openmpi": 3.0},
              "peers_p99": {"openmpi": 20.0}, "ratio": {"openmpi": 1.5}}  # fmt: skip
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"open(sys.argv[sys.argv.index('--json') + 1], 'w').write('''[{json.dumps(answer)}]''')\n"
    )
    program.chmod(0o755)
    words = ["--np", "1", "--sizes", "4096", "--rueda", str(program)]
    done = bench(source_root, *words)
    assert done.returncode == 1
    assert "| 4096 | 2 | 3 | 1.50 | 30 | 20 | 1.50 | missed |" in done.stdout
    program.write_text(program.read_text().replace("30.0", "25.0"))
    done = bench(source_root, *words)
    assert done.returncode == 0, done.stderr
    assert "| 1.25 | ok |" in done.stdout


def test_more_ranks_than_cores_are_refused(source_root: Path) -> None:
    most = len(os.sched_getaffinity(0))
    done = bench(source_root, "--np", str(most + 1))
    assert done.returncode == 2
    assert f"this program may use {most} cores only" in done.stderr
