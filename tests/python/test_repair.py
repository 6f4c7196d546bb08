# SPDX-License-Identifier: Apache-2.0
"""RUEDA_REPAIR=1, run(repair=True): a PyTorch script goes on when ranks of its host die."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Callable

import pytest
from ranks import Done, environment, program

pytest.importorskip("torch", reason="missing tool: torch")

LIMIT_S = 300
STEPS = 12


@pytest.fixture
def train(need_tool: Callable[[str], str]) -> Callable[..., Done]:
    """A function that trains on this many ranks, of which some die, and returns what
    ruedarun did."""
    launcher = need_tool("ruedarun")

    def call(size: int, deaths: dict[int, int], **more: str) -> Done:
        words = [f"{rank}:{step}" for rank, step in deaths.items()]
        return subprocess.run(
            [launcher, "-np", str(size), sys.executable, program("torch_repair.py"), str(STEPS),
             *words],
            capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
            env=environment(**more),
        )  # fmt: skip

    return call


def said(out: str) -> list[tuple[int, int, int, str, str]]:
    """The last line of each rank: its number at first and at last, the size, parameters,
    and whether they are right."""
    lines = re.findall(r"was (\d) is (\d) of (\d) (\w+) (\w+)", out)
    return sorted((int(a), int(b), int(c), digest, right) for a, b, c, digest, right in lines)


@pytest.mark.parametrize("settings", [{"RUEDA_REPAIR": "1"}, {}], ids=["setting", "run"])
def test_others_end_the_training_as_if_they_had_begun_the_step_alone(train, settings) -> None:
    deaths = {0: 3, 2: 7}
    done = train(4, deaths, **settings)
    assert done.returncode == 0, done.stderr
    lines = said(done.stdout)
    size = 4 - len(deaths)
    assert [line[0] for line in lines] == [rank for rank in range(4) if rank not in deaths]
    assert sorted(line[1] for line in lines) == list(range(size)), done.stdout
    assert {line[2] for line in lines} == {size}, done.stdout
    assert len({line[3] for line in lines}) == 1, done.stdout
    assert {line[4] for line in lines} == {"True"}, done.stdout
    assert "the others go on without it" in done.stderr
