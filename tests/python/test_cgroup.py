# SPDX-License-Identifier: Apache-2.0
"""Ranks in a cgroup whose memory has a limit, as in a container."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest
from ranks import program

LIMIT = 256 << 20
TIMEOUT_S = 60


def own_cgroup() -> Path | None:
    """Where this process's memory is counted: cgroup v1, or v2."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if "memory" in kinds.split(","):
            return Path("/sys/fs/cgroup/memory" + path)
    unified = Path("/sys/fs/cgroup")
    return unified if (unified / "memory.stat").exists() else None


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """An empty cgroup with a limit; only who may make one has it."""
    parent = own_cgroup()
    if parent is None:
        pytest.skip("no cgroup counts memory here")
    folder = parent / f"rueda-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error}")
    try:
        for name in ("memory.max", "memory.limit_in_bytes"):
            if (folder / name).exists():
                (folder / name).write_text(str(LIMIT))
                break
        else:
            pytest.skip("cgroups below this one have no limit of memory")
        yield folder
    finally:
        folder.rmdir()


def inside(folder: Path, command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, program("enter_cgroup.py"), str(folder), *command],
        env={**os.environ, **more},
        capture_output=True, text=True, timeout=TIMEOUT_S,
    )


def test_files_that_were_read_leave_room_to_start(
    cgroup: Path, need_tool: Callable[[str], str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with data.open("wb") as file:
        file.truncate(2 * LIMIT)
    bench = f"{need_tool('rueda')} bench --np 2 --min 8 --max 8 --rounds 1"
    ended = inside(cgroup, ["sh", "-c", f"cat {data} >/dev/null && exec {bench}"])
    assert ended.returncode == 0, ended.stderr


def test_a_fusion_slab_without_memory_is_refused_in_words(
    cgroup: Path, need_tool: Callable[[str], str]
) -> None:
    bench = [need_tool("rueda"), "bench", "step", "--np", "2", "--tensors", "20",
             "--bytes", "4m", "--rounds", "2"]
    ended = inside(cgroup, bench, RUEDA_FUSION_BYTES="1g")
    assert ended.returncode == 1, ended.stderr
    assert "asks for 1024 MiB of shared memory" in ended.stderr
    assert "died" not in ended.stderr
