# SPDX-License-Identifier: Apache-2.0
"""Cases that are run by several ranks: one job for all cases of a file.

A test file has functions whose names begin with ``case_`` and ends with

    test_case = cases_of(__name__)

    if __name__ == "__main__":
        run_cases(globals())

Each case is run by all ranks at once, between an init() and a shutdown(), and is
a test: it passes if it raised nothing on any rank. Since importing torch takes
longer than most cases, the processes are started once.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

import pytest
from ranks import Done, environment, run_all

LIMIT_S = 180
HERE = Path(__file__).resolve().parent
SIZE = 2


def run_job(
    program: str, *words: str, size: int = SIZE, limit_s: float = LIMIT_S, **more: str
) -> list[Done]:
    """Run this many ranks of a Python program."""
    job = f"torch-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    return run_all(
        [[sys.executable, program, *words]] * size,
        [
            environment(
                RUEDA_RANK=str(rank),
                RUEDA_SIZE=str(size),
                RUEDA_JOB=job,
                PYTHONPATH=str(HERE),
                HOROVOD_DYNAMIC_PROCESS_SETS="1",
                **more,
            )
            for rank in range(size)
        ],
        limit_s,
    )


def run_cases(members: dict[str, Any], module: str = "rueda.torch") -> None:
    """The main program of a rank."""
    from rueda.common.objects import allgather_object

    hvd = importlib.import_module(module)
    for name in [name for name in members if name.startswith("case_")]:
        start = time.monotonic()
        try:
            hvd.init()
            members[name]()
            allgather_object(None, "end of the case")
            print(f"\npassed {name} {time.monotonic() - start:.2f}", flush=True)
        except Exception:
            print(f"\nfailed {name}\n{traceback.format_exc()}", flush=True)
        finally:
            # After a failure this ends the case on the other ranks, too.
            hvd.shutdown()


def cases_of(
    module: str,
    size: int = SIZE,
    needs: Sequence[str] = ("torch",),
    limit_s: float = LIMIT_S,
    **more: str,
) -> Callable[..., None]:
    """A test of pytest's for the cases of this module, with these variables."""
    members = vars(sys.modules[module])
    names = [name for name in members if name.startswith("case_")]

    @functools.lru_cache(maxsize=1)
    def outputs() -> list[str]:
        try:
            done = run_job(members["__file__"], size=size, limit_s=limit_s, **more)
        except subprocess.TimeoutExpired as late:
            return [f"the ranks did not end: {late}"]  # once is enough for all cases
        return [f"{one.stdout}\nstatus {one.returncode}\n{one.stderr[-3000:]}" for one in done]

    @pytest.mark.parametrize("name", names)
    def test_case(name: str) -> None:
        for tool in needs:
            if importlib.util.find_spec(tool) is None:
                pytest.skip(f"missing tool: {tool}")
        for rank, output in enumerate(outputs()):
            assert f"\npassed {name} " in output, f"rank {rank}:\n{about(name, output)}"

    return test_case


def about(name: str, output: str) -> str:
    """What is said of the case that failed, or everything if it was not reached."""
    found = re.search(rf"^failed {name}$.*?(?=^(?:passed|failed|status) )", output, re.M | re.S)
    return found.group() if found else output[-6000:]
