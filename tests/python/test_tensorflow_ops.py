# SPDX-License-Identifier: Apache-2.0
"""rueda.tensorflow between real processes; what they do is in tensorflow_cases.py."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from ranks import environment, program, run_all

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("missing tool: tensorflow", allow_module_level=True)

LIMIT_S = 400
CASES = Path(__file__).with_name("tensorflow_cases.py")
NAMES = re.findall(r"^@case\ndef (\w+)", CASES.read_text(), re.MULTILINE)

# TensorFlow says much about GPUs that are not there.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(scope="module")
def results(
    need_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, str]]:
    """What all cases said, for each of two ranks."""
    folder = tmp_path_factory.mktemp("tensorflow")
    command = [need_tool("ruedarun"), "-np", "2", sys.executable, str(CASES), str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, env=environment(**QUIET)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("name", NAMES)
def test_case(results: list[dict[str, str]], name: str) -> None:
    for rank, said in enumerate(results):
        assert not said[name], f"rank {rank}: {said[name]}"


def test_a_lost_rank_is_named_and_a_loop_that_overlaps_explained(tmp_path: Path) -> None:
    job = f"tensorflow-{os.getpid()}"
    places = [
        environment(RUEDA_RANK=str(rank), RUEDA_SIZE="2", RUEDA_JOB=job, **QUIET)
        for rank in range(2)
    ]
    lose = [sys.executable, program("tensorflow_lose_a_rank.py"), str(tmp_path / "mark")]
    first, second = run_all([lose] * 2, places, LIMIT_S)
    assert second.returncode == 3, second.stderr
    assert first.returncode == 0, first.stderr
    assert "of a loop: 1" in first.stdout, first.stdout
    assert first.stdout.count("said:") == 2 and "rank 1" in first.stdout, first.stdout
