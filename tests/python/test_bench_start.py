# SPDX-License-Identifier: Apache-2.0
"""bench/start: launchers in turn, and its table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from ranks import environment

LIMIT_S = 120


def test_launchers_take_turns(source_root: Path, tmp_path: Path, need_tool) -> None:
    """One that is slow, one that fails and one that hangs, in the places of torchrun and MPI."""
    need_tool("ruedarun")
    for name, text in [("torchrun", "sleep 0.5"), ("mpirun.openmpi", "exit 3"),
                       ("mpirun.mpich", f"echo $$ >>{tmp_path}/ids; sleep 600")]:  # fmt: skip
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(source_root / "bench" / "start"), "--sizes", "2", "--turns", "2",
         "--limit", "3", "--torchrun", str(tmp_path / "torchrun"),
         "--json", str(tmp_path / "rows"), "--table", str(tmp_path / "table")],
        capture_output=True, text=True, timeout=LIMIT_S,
        env=environment(PATH=f"{tmp_path}:/usr/bin:/bin"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "# horovodrun is not installed, and left out\n" in done.stdout
    assert (tmp_path / "table").read_text() in done.stdout
    rows = {row["launcher"]: row for row in json.loads((tmp_path / "rows").read_text())}
    assert [*rows] == ["ruedarun", "openmpi", "mpich", "torchrun"]
    assert [row["failed"] for row in rows.values()] == [0, 2, 2, 0]
    assert rows["ruedarun"]["vs"] == 1
    assert rows["openmpi"]["median_ms"] is None
    assert rows["torchrun"]["least_ms"] >= 500
    for process in (tmp_path / "ids").read_text().split():
        assert not Path(f"/proc/{process}").exists()
