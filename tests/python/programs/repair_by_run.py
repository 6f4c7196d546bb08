# SPDX-License-Identifier: Apache-2.0
"""Sums in ranks that repair their job by rueda.elastic: `repair_by_run.py END STEPS RANK:STEP ...`.

END is how a step ends: step, commit, or none. Each rank gives a bit of its own to each sum, so
that a result says which ranks are in it. In the end a rank says its number at first and at
last, the size, how often the function was called, and what it has got. In a job that was started
again all ranks live.
"""

from __future__ import annotations

import os
import signal
import sys

import rueda.elastic
import rueda.torch as hvd
import torch

END, STEPS = sys.argv[1], int(sys.argv[2])
DEATHS = {int(rank): int(step) for rank, step in (word.split(":") for word in sys.argv[3:])}
calls = 0
is_first = os.environ.get("RUEDA_RESTART", "0") == "0"

hvd.init()
seat = hvd.rank()


@rueda.elastic.run(repair=True)
def train(state: rueda.elastic.ObjectState) -> None:
    global calls
    calls += 1
    while state.step < STEPS:
        if is_first and calls == 1 and state.step == DEATHS.get(seat):
            os.kill(os.getpid(), signal.SIGKILL)
        bits = hvd.allreduce(torch.tensor([1 << seat]), name="bits", op=hvd.Sum)
        state.masks = [*state.masks, int(bits)]
        state.step += 1
        if END == "step":
            rueda.elastic.step()
        elif END == "commit":
            state.commit()


state = rueda.elastic.ObjectState(step=0, masks=[])
train(state)
masks = ",".join(map(str, state.masks))
print(f"was {seat} is {hvd.rank()} of {hvd.size()} calls {calls} got {masks}", flush=True)
hvd.shutdown()
