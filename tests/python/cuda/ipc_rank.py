# SPDX-License-Identifier: Apache-2.0
"""One rank of a job on one GPU: python ipc_rank.py CASE. Ends well only if all is right."""

from __future__ import annotations

import os
import signal
import sys
from typing import Callable

import rueda.torch as hvd
import torch

# Short ones go by way of the host, others are packed, the last ones are reduced where they are.
LENGTHS = (1, 3, 1003, 65537, 70001, 300007, (1 << 20) + 1, (5 << 20) + 3, 33 << 20)
DTYPES = (torch.float32, torch.bfloat16, torch.int32, torch.uint8)


def wanted(length: int, dtype: torch.dtype) -> torch.Tensor:
    places = torch.arange(length, device="cuda") % 7
    return sum(places * (rank + 1) for rank in range(hvd.size())).to(dtype)


def mine(length: int, dtype: torch.dtype, skip: int = 0) -> torch.Tensor:
    whole = torch.empty(length + skip, dtype=dtype, device="cuda")
    tensor = whole[skip:]
    tensor.copy_((torch.arange(length, device="cuda") % 7) * (hvd.rank() + 1))
    return tensor


def every_length() -> None:
    for dtype in DTYPES:
        for length in LENGTHS:
            for skip in (0, hvd.rank() % 2):
                result = hvd.allreduce(mine(length, dtype, skip), op=hvd.Sum, name=f"o.{length}")
                assert torch.equal(result, wanted(length, dtype)), (dtype, length, skip)
                tensor = mine(length, dtype, skip)
                hvd.allreduce_(tensor, op=hvd.Sum, name=f"i.{length}")
                assert torch.equal(tensor, wanted(length, dtype)), (dtype, length, skip)


def other_kinds() -> None:
    size, rank = hvd.size(), hvd.rank()
    for rows in (3, 200_000):
        far = torch.full((rows + rank, 3), float(rank), device="cuda")
        got = hvd.allgather(far, name=f"g.{rows}")
        assert torch.equal(
            got,
            torch.cat([torch.full((rows + r, 3), float(r), device="cuda") for r in range(size)]),
        )
        cast = torch.full((rows, 5), float(rank), device="cuda")
        assert (hvd.broadcast(cast, size - 1, name=f"b.{rows}") == size - 1).all()
        part = hvd.reducescatter(
            torch.ones((rows * size + 1, 3), device="cuda"), op=hvd.Sum, name=f"s.{rows}"
        )
        assert (part == size).all() and len(part) >= rows


def memory_comes_and_goes() -> None:
    lowest = None
    for turn in range(40):
        tensor = torch.full(((8 << 20) + turn * (1 << 18),), float(turn), device="cuda")
        assert (hvd.allreduce(tensor, op=hvd.Sum, name="t") == turn * hvd.size()).all()
        del tensor
        torch.cuda.empty_cache()
        free = torch.cuda.mem_get_info()[0]
        if turn == 10:
            lowest = free
    assert lowest is not None
    assert free > lowest - (1 << 30), "others hold memory that was freed"


def a_rank_is_killed() -> None:
    tensor = torch.ones(16 << 20, device="cuda")
    try:
        for turn in range(1000):
            handle = hvd.allreduce_async_(tensor, op=hvd.Average, name="t")
            if hvd.rank() == 1 and turn == 20:
                os.kill(os.getpid(), signal.SIGKILL)
            hvd.synchronize(handle)
    except Exception as error:
        assert type(error).__name__ == "HorovodInternalError", repr(error)
        # The GPU still works for this process.
        assert (torch.ones(1000, device="cuda") * 2).sum().item() == 2000
        hvd.shutdown()
        print("SURVIVED", error, flush=True)
        return
    raise SystemExit("nothing was noticed")


def main() -> None:
    case: Callable[[], None] = globals()[sys.argv[1]]
    hvd.init()
    torch.cuda.set_device(0)
    case()
    hvd.shutdown()


main()
