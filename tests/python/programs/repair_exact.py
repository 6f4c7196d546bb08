# SPDX-License-Identifier: Apache-2.0
"""Training whose sums are exact, in which ranks may be lost: `repair_exact.py STEPS PAUSE_S`.

The gradients of a rank are whole multiples of 2**-24, so that their sum does not depend on
the order of additions, and each rank adds a bit of its own to them, so that a sum says which
ranks are in it. In the end a rank trains once more alone, with the gradients of just these
ranks in each step, and writes to the folder OUT whether the parameters are equal bit by bit.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import rueda.torch as hvd
import torch

STEPS, PAUSE_S, WIDTH = int(sys.argv[1]), float(sys.argv[2]), 5000
FINE = 2.0**24


def gradient_of(parameters: torch.Tensor, seat: int, step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * step + seat)
    wish = torch.randn(WIDTH, generator=generator, dtype=torch.float64)
    return torch.round((parameters - wish).clamp(-8, 8) * FINE) / FINE


def go(parameters: torch.Tensor, total: torch.Tensor, count: int) -> torch.Tensor:
    return parameters - 0.1 * total / count


def reference(masks: list[int]) -> torch.Tensor:
    parameters = torch.zeros(WIDTH, dtype=torch.float64)
    for step, mask in enumerate(masks):
        seats = [seat for seat in range(64) if mask >> seat & 1]
        total = sum(gradient_of(parameters, seat, step) for seat in seats)
        parameters = go(parameters, total, len(seats))
    return parameters


hvd.init()
number = hvd.rank()
own_bit = torch.tensor([2.0**number], dtype=torch.float64)
with Path(os.environ["OUT"], str(number)).open("w") as file:
    print(json.dumps({"pid": os.getpid()}), file=file, flush=True)
    found, masks = torch.zeros(WIDTH, dtype=torch.float64), []
    for step in range(STEPS):
        mine = torch.cat([gradient_of(found, number, step), own_bit])
        sums = hvd.allreduce(mine, name="gradient", op=hvd.Sum)
        masks.append(int(sums[-1]))
        found = go(found, sums[:-1], bin(masks[-1]).count("1"))
        hvd.elastic.step()
        print(json.dumps({"did": step, "when": time.time()}), file=file, flush=True)
        time.sleep(PAUSE_S)
    is_equal = torch.equal(found, reference(masks))
    end = {"got": masks, "size": hvd.size(), "rank": hvd.rank(), "is_equal": is_equal}
    print(json.dumps(end), file=file, flush=True)
hvd.shutdown()
