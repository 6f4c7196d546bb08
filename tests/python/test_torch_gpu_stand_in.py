# SPDX-License-Identifier: Apache-2.0
"""rueda.torch hands tensors of a GPU to the library, with device and stream.

There is no GPU: tests/support/fake/cuda.c stands in for its driver.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from ranks import environment, program

pytest.importorskip("torch", reason="missing tool: torch")

ROOT = Path(__file__).parent.parent.parent
LIMIT_S = 120


@pytest.mark.parametrize("name", ["gpu_stand_in.py", "gpu_stand_in_c10d.py"])
def test_tensors_of_a_gpu_are_handed_over(
    name: str, need_tool: Callable[[str], str], tmp_path: Path
) -> None:
    library = tmp_path / "libcuda_stand_in.so.1"
    subprocess.run(
        [need_tool("cc"), "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-pthread",
         f"-I{ROOT / 'src'}", "-o", str(library), str(ROOT / "tests/support/fake/cuda.c")],
        check=True, timeout=LIMIT_S,
    )  # fmt: skip
    command = [need_tool("ruedarun"), "-np", "2", sys.executable, program(name)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S,
        env=environment(RUEDA_CUDA_LIB=str(library)),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
