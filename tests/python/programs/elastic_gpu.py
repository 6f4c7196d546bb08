# SPDX-License-Identifier: Apache-2.0
"""An elastic training over tensors that say they are on a GPU: `elastic_gpu.py STEPS RANK:STEP`.

The rank kills itself in that step of the first term, when others may be in their sum. Each step
adds the average over the ranks of whole numbers, so a survivor can tell from its weights whether
it went on from the last commit. In the end it says its numbers, how often the function was
called, the first step of each call, whether the weights are right, and how many allocations of
other ranks it has mapped and how often it launched NCCL since the death.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

# Each rank has a host of its own, as NCCL sees it.
os.environ["NCCL_HOSTID"] = f"host{os.getpid()}"

import rueda.elastic
import rueda.torch as hvd
import torch
from far_tensors import Driver, Far, pretend

STEPS = int(sys.argv[1])
VICTIM, LAST = (int(word) for word in sys.argv[2].split(":"))
COUNT = 400009  # too long to go by way of the host


def gradient_of(rank: int, step: int) -> torch.Tensor:
    return (torch.arange(COUNT, dtype=torch.float32) % 8) * (step + 1) + 12 * rank


def launches() -> int:
    library = os.environ.get("RUEDA_NCCL_LIB", "")
    return ctypes.CDLL(library).fake_nccl_launches() if library else 0


hvd.init()
driver = Driver()
pretend()
seat, begins, sizes, counted = hvd.rank(), [], [], [0]


@rueda.elastic.run
def train(state: rueda.elastic.ObjectState) -> None:
    begins.append(state.step)
    counted.append(launches())
    gradient = Far.put(driver, gradient_of(hvd.rank(), state.step))
    while state.step < STEPS:
        mine = gradient_of(hvd.rank(), state.step)
        driver.copy(gradient.at, mine.data_ptr(), mine.nbytes)
        handle = hvd.allreduce_async_(gradient, name="gradient", op=hvd.Average)
        if len(begins) == 1 and (seat, state.step) == (VICTIM, LAST):
            os.kill(os.getpid(), signal.SIGKILL)
        hvd.synchronize(handle)
        state.weights = state.weights + gradient.cpu()
        state.sizes = [*state.sizes, hvd.size()]
        state.step += 1
        state.commit()


state = rueda.elastic.ObjectState(step=0, sizes=[], weights=torch.zeros(COUNT))
train(state)
wanted = sum(
    sum(gradient_of(rank, step) for rank in range(size)) / size
    for step, size in enumerate(state.sizes)
)
is_right = torch.allclose(state.weights, wanted)
bits = hvd.allgather_object(state.weights.numpy().tobytes())
print(
    f"rank {hvd.rank()} of {hvd.size()} began at {','.join(map(str, begins))} right {is_right} "
    f"alike {len(set(bits)) == 1} mapped {driver.library.fake_cuda_mapped()} "
    f"launched {launches() - counted[-1]}",
    flush=True,
)
hvd.shutdown()
