# SPDX-License-Identifier: Apache-2.0
"""Sums in which ranks may be lost: `repair_bits.py STEPS PAUSE_S LARGE`.

Each rank gives a bit of its own to each sum, so that a result says which ranks are in it.
A rank writes to the folder OUT when it begins (pid), after each step (time), and at the end
what it has got, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import rueda.torch as hvd
import torch

STEPS, PAUSE_S, LARGE = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
hvd.init()
seat = hvd.rank()
out = Path(os.environ["OUT"], str(seat))
bit = torch.full((700,), 1 << seat, dtype=torch.int64)
large = torch.full((LARGE,), 1 << seat, dtype=torch.int64)


def value_of(tensor: torch.Tensor) -> int:
    """All elements alike; -1: they are not."""
    first = int(tensor[0])
    return first if bool((tensor == first).all()) else -1


def one_step(step: int) -> list[int]:
    handles = [hvd.allreduce_async(bit, name=f"bit.{i}", op=hvd.Sum) for i in range(3)]
    found = [value_of(hvd.synchronize(handle)) for handle in handles]
    found.append(value_of(hvd.allreduce(large, name="large", op=hvd.Sum)))
    hvd.elastic.step()
    return found


with out.open("w") as file:
    print(json.dumps({"pid": os.getpid()}), file=file, flush=True)
    got = []
    for step in range(STEPS):
        got.append(one_step(step))
        print(json.dumps({"did": step, "when": time.time()}), file=file, flush=True)
        time.sleep(PAUSE_S)
    print(
        json.dumps({"got": got, "rank": hvd.rank(), "size": hvd.size(),
                    "local": [hvd.local_rank(), hvd.local_size()]}),
        file=file, flush=True,
    )  # fmt: skip
hvd.shutdown()
