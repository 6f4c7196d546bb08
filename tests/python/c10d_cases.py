# SPDX-License-Identifier: Apache-2.0
"""Cases of torch.distributed that are run by several ranks: one job for all cases of a file.

As in rank_cases.py; each case runs between an init_process_group("rueda") and a
destroy_process_group().
"""

from __future__ import annotations

import functools
import subprocess
import sys
import time
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any, Callable

import pytest
from rank_cases import about
from ranks import Done, environment, free_port, run_all

LIMIT_S = 150
HERE = Path(__file__).resolve().parent


def run_ranks(
    program: str, *words: str, size: int, limit_s: float = LIMIT_S, **more: str
) -> list[Done]:
    """Run a program on this number of ranks, as torchrun starts them."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return run_all(
        [[sys.executable, program, *words]] * size,
        [
            environment(RANK=str(rank), WORLD_SIZE=str(size), PYTHONPATH=str(HERE), **place, **more)
            for rank in range(size)
        ],
        limit_s,
    )


def run_cases(members: dict[str, Any]) -> None:
    """The main program of a rank."""
    import rueda.torch.c10d  # noqa: F401 -- registers the back end
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    # One store for all cases: rank 0 might close its own while others still use it.
    store, rank, size = next(dist.rendezvous("env://"))
    for name in [name for name in members if name.startswith("case_")]:
        start = time.monotonic()
        try:
            dist.init_process_group(
                "rueda", store=dist.PrefixStore(name, store), rank=rank, world_size=size,
                timeout=timedelta(seconds=60),
            )  # fmt: skip
            members[name]()
            dist.barrier()
            print(f"\npassed {name} {time.monotonic() - start:.2f}", flush=True)
        except Exception:
            print(f"\nfailed {name}\n{traceback.format_exc()}", flush=True)
        finally:
            # After a failure this ends the case on the other ranks, too.
            if dist.is_initialized():
                dist.destroy_process_group()


def cases_of(module: str, size: int, limit_s: float = LIMIT_S) -> Callable[..., None]:
    """A test of pytest's for the cases of this module."""
    members = vars(sys.modules[module])
    names = [name for name in members if name.startswith("case_")]

    @functools.lru_cache(maxsize=1)
    def outputs() -> list[str]:
        try:
            done = run_ranks(members["__file__"], size=size, limit_s=limit_s)
        except subprocess.TimeoutExpired as error:
            return [f"{error}"]  # once, and not for each case
        return [f"{one.stdout}\nstatus {one.returncode}\n{one.stderr[-3000:]}" for one in done]

    @pytest.mark.parametrize("name", names)
    def test_case(name: str) -> None:
        pytest.importorskip("torch", reason="missing tool: torch")
        for rank, output in enumerate(outputs()):
            assert f"\npassed {name} " in output, f"rank {rank}:\n{about(name, output)}"

    return test_case
