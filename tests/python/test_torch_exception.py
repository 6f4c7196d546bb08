# SPDX-License-Identifier: Apache-2.0
"""A Python exception in one rank of a training script, as its user sees it."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Callable

import pytest
from ranks import Done, environment, program

pytest.importorskip("torch", reason="missing tool: torch")

LIMIT_S = 120

@pytest.fixture
def run(need_tool: Callable[[str], str]) -> Callable[..., Done]:
    """A function that runs the script on this many ranks."""
    launcher = need_tool("ruedarun")

    def call(size: int, package: str) -> Done:
        script = program("torch_bad_data.py")
        return subprocess.run(
            [launcher, "-np", str(size), sys.executable, script, package], capture_output=True,
            text=True, timeout=LIMIT_S, env=environment(), stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return call


@pytest.mark.parametrize(("size", "package"), [(2, "rueda"), (3, "horovod")])
def test_the_traceback_that_counts_is_shown_first(run, size: int, package: str) -> None:
    done = run(size, package)
    assert done.returncode == 1
    assert "not reached" not in done.stdout
    raised = re.findall(r"^\[(\d)\]<stderr>:(\w+(?:\.\w+)*): ", done.stderr, re.M)
    assert raised[0] == ("1", "ValueError"), done.stderr
    # The launcher sums up by the rank that was the cause, not by those that followed.
    told = done.stderr[done.stderr.index("ruedarun: ") :]
    assert "ValueError: line 7 of the data has no label" in told


def test_the_other_ranks_know_why(run) -> None:
    done = run(3, "rueda")
    lines = done.stderr.splitlines()
    texts = [
        "\n".join(line for line in lines if line.startswith(f"[{rank}]<stderr>:"))
        for rank in (0, 2)
    ]
    for text in texts:
        assert "ValueError: line 7 of the data has no label" in text, done.stderr
    # Both raise the same, unless one is late; ruedarun shows it once.
    shown = ["HorovodInternalError" in text for text in texts]
    assert all(shown) or (any(shown) and "raised the same as rank" in done.stderr), done.stderr
