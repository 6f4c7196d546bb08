# SPDX-License-Identifier: Apache-2.0
"""rueda.torch hands tensors of a GPU to the library, with device and stream.

There is no GPU: tests/support/fake/cuda.c stands in for its driver.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from ranks import environment, program

pytest.importorskip("torch", reason="missing tool: torch")

ROOT = Path(__file__).parent.parent.parent
LIMIT_S = 120


def compiled(cc: str, name: str, folder: Path) -> Path:
    """The stand-in of this name, as a library."""
    library = folder / f"lib{name}_stand_in.so.1"
    subprocess.run(
        [cc, "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-pthread",
         f"-I{ROOT / 'src'}", "-o", str(library), str(ROOT / f"tests/support/fake/{name}.c"),
         "-ldl"],
        check=True, timeout=LIMIT_S,
    )  # fmt: skip
    return library


@pytest.mark.parametrize("name", ["gpu_stand_in.py", "gpu_stand_in_c10d.py"])
def test_tensors_of_a_gpu_are_handed_over(
    name: str, need_tool: Callable[[str], str], tmp_path: Path
) -> None:
    library = compiled(need_tool("cc"), "cuda", tmp_path)
    command = [need_tool("ruedarun"), "-np", "2", sys.executable, program(name)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S,
        env=environment(RUEDA_CUDA_LIB=str(library)),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("way", ["mapped", "nccl"])
def test_an_elastic_training_goes_on_from_the_last_commit(
    way: str, need_tool: Callable[[str], str], tmp_path: Path
) -> None:
    steps, last = 12, 5
    settings = {"RUEDA_CUDA_LIB": str(compiled(need_tool("cc"), "cuda", tmp_path))}
    if way == "nccl":
        nccl = compiled(need_tool("cc"), "nccl", tmp_path)
        settings.update(RUEDA_NCCL="always", RUEDA_NCCL_LIB=str(nccl))
    else:
        settings.update(RUEDA_NCCL="never")
    done = subprocess.run(
        [need_tool("ruedarun"), "-np", "3", "--min-np", "2", "-H", "localhost:3", sys.executable,
         program("elastic_gpu.py"), str(steps), f"1:{last}"],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(**settings),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    ends = re.findall(
        r"rank (\d) of 2 began at (\S+) right True alike True mapped (\d+) launched (\d+)",
        done.stdout,
    )
    assert sorted(end[0] for end in ends) == ["0", "1"], done.stdout + done.stderr
    for _, begins, mapped, launched in ends:
        # Back to the commit before the death, and no further.
        assert begins in (f"0,{last}", f"0,{last + 1}")
        if way == "nccl":
            assert int(launched) >= steps - last - 1
        else:
            assert int(mapped) > 0 and int(launched) == 0
