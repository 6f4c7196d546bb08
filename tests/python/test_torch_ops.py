# SPDX-License-Identifier: Apache-2.0
"""rueda.torch between real processes; what they do is in torch_cases.py."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Callable

import pytest
from ranks import environment

pytest.importorskip("torch", reason="missing tool: torch")

import torch_cases  # noqa: E402

LIMIT_S = 240

Results = dict[str, list[str]]


@pytest.fixture(scope="session")
def results_of(
    need_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[int], Results]:
    """A function that runs all cases on this many ranks, once."""
    known: dict[int, Results] = {}

    def run(ranks: int) -> Results:
        if ranks not in known:
            folder = tmp_path_factory.mktemp(f"torch{ranks}")
            command = [need_tool("ruedarun"), "-np", str(ranks), sys.executable,
                       torch_cases.__file__, str(folder)]  # fmt: skip
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=LIMIT_S, env=environment()
            )
            assert done.returncode == 0, done.stdout + done.stderr
            each = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]
            known[ranks] = {name: [one[name] for one in each] for name in each[0]}
        return known[ranks]

    return run


@pytest.mark.parametrize("name", torch_cases.CASES)
@pytest.mark.parametrize("ranks", [2, 4])
def test_case(results_of: Callable[[int], Results], ranks: int, name: str) -> None:
    for rank, words in enumerate(results_of(ranks)[name]):
        assert not words, f"rank {rank}: {words}"
