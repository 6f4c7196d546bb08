# SPDX-License-Identifier: Apache-2.0
"""The examples in C, built against the installed package, with several ranks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Callable

import pytest
import rueda

LIMIT_S = 60
EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples" / "c").glob("*.c"))

# What every rank of n prints at the end of its line.
ANSWERS = {
    "hello_allreduce": lambda n: f"the sum is {n * (n + 1) // 2}",
    "named_tensors": lambda n: (
        f"the averages are {(n - 1) / 2:g}, {(n + 1) / 2:g} and {(n + 3) / 2:g}"
    ),
    "shared_memory": lambda n: f"the average is {(n + 1) / 2:g}",
}


@pytest.fixture(params=EXAMPLES, ids=lambda source: source.stem)
def example(
    request: pytest.FixtureRequest, tmp_path: Path, need_tool: Callable[[str], str]
) -> Path:
    """An example, compiled as a user would."""
    library = Path(rueda.get_library())
    program = tmp_path / request.param.stem
    subprocess.run(
        [need_tool("gcc"), str(request.param), "-o", str(program),
         f"-I{rueda.get_include()}", str(library), f"-Wl,-rpath,{library.parent}"],
        check=True,
        timeout=LIMIT_S,
    )
    return program


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_rank_prints_the_answer(example: Path, size: int) -> None:
    common = {
        **os.environ,
        "RUEDA_SIZE": str(size),
        "RUEDA_JOB": f"example-{os.getpid()}",
    }
    ranks = [
        subprocess.Popen(
            [str(example)],
            env={**common, "RUEDA_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        answers = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    answer = ANSWERS[example.name](size)
    assert answers == [f"rank {rank} of {size}: {answer}\n" for rank in range(size)]
    assert [rank.returncode for rank in ranks] == [0] * size
