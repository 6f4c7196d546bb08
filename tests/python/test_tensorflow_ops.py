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


def run_cases(
    launcher: str, folder: Path, *names: str, **more: str
) -> tuple[list[dict[str, str]], str]:
    """What these cases, or all, said on each of two ranks; and what the job wrote."""
    done = subprocess.run(
        [launcher, "-np", "2", sys.executable, str(CASES), str(folder), *names],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(**QUIET, **more),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]
    return said, done.stdout + done.stderr


@pytest.fixture(scope="module")
def results(
    need_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, str]]:
    """What all cases said, for each of two ranks."""
    return run_cases(need_tool("ruedarun"), tmp_path_factory.mktemp("tensorflow"))[0]


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


def test_ops_work_where_each_occupies_a_thread(
    need_tool: Callable[[str], str], tmp_path: Path
) -> None:
    """As with TensorFlow 2.12. Others are a sample of what is the same in both ways."""
    names = ["every_type_and_reduction", "reductions_in_every_way", "rows_in_every_way",
             "gradients_of_collectives", "ranks_that_differ_are_named", "tapes"]  # fmt: skip
    ranks, words = run_cases(
        need_tool("ruedarun"), tmp_path, *names, RUEDA_TENSORFLOW_WAITS="1"
    )
    for rank, said in enumerate(ranks):
        assert list(said) == names
        for name, failure in said.items():
            assert not failure, f"rank {rank}, {name}: {failure}"
    assert words.count("each op occupies a thread of TensorFlow") == 1, words


def test_ops_stay_out_of_what_xla_compiles_by_itself(
    need_tool: Callable[[str], str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [need_tool("ruedarun"), "-np", "2", sys.executable, program("tensorflow_clusters.py"),
         str(tmp_path)],
        capture_output=True, text=True, timeout=LIMIT_S,
        env=environment(
            **QUIET,
            TF_XLA_FLAGS="--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_clustering_debug",
        ),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("clusters: all right") == 2, done.stdout
