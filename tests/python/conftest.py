# SPDX-License-Identifier: Apache-2.0
"""What tests in Python share."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Callable

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from cluster import Hosts, cluster, missing
from slurm import slurm  # noqa: F401 -- a fixture

# A shell has its background jobs ignore Ctrl-C, and what they start too.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def source_root() -> Path:
    """The root of the source tree."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def need_tool() -> Callable[[str], str]:
    """A function that finds a program, or skips the test.

    Programs that were installed together with this Python come first. The
    reason of the skip is what tools/run-tests knows a missing tool by.
    """
    beside_python = str(Path(sys.executable).parent)

    def find(name: str) -> str:
        path = shutil.which(name, path=beside_python) or shutil.which(name)
        if path is None:
            pytest.skip(f"missing tool: {name}")
        return path

    return find


@pytest.fixture
def key_file(need_tool: Callable[[str], str], tmp_path: Path) -> str:
    """A new key, in a file as ranks want it."""
    path = tmp_path / "key"
    subprocess.run([need_tool("rueda"), "key", str(path)], check=True, timeout=60)
    return str(path)


@pytest.fixture
def make_hosts() -> Iterator[Callable[[int], Hosts]]:
    """A function that makes this many hosts, which go with the test."""
    lack = missing()
    if lack is not None:
        pytest.skip(lack)
    with ExitStack() as made:
        yield lambda count: made.enter_context(cluster(count))
