# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits in PyTorch while ranks come and go: ``elastic_digits.py LOG STEPS PAUSE``.

The model of examples/elastic/pytorch.py, and the first SAMPLES pictures of the file DIGITS. Every
rank appends lines to the file LOG as elastic_steps.py does, with a digest of its parameters in
place of the weights. A ledger hands out the pictures, and the file LOG.counts gets how often each
was seen in each epoch.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import rueda.torch as hvd
import torch
import torch.nn.functional as F
from rueda.data import Ledger
from torch import nn

log, steps, pause = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
BATCH = 16

torch.set_num_threads(1)
pictures, labels = torch.load(os.environ["DIGITS"])
length = int(os.environ["SAMPLES"])
pictures, labels = pictures[:length], labels[:length]
hvd.init()
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
ledger = Ledger(length)


def digest() -> str:
    whole = b"".join(one.detach().numpy().tobytes() for one in model.state_dict().values())
    return hashlib.sha256(whole).hexdigest()


def write(what: str, state: hvd.elastic.TorchState) -> None:
    place = [os.getpid(), hvd.rank(), hvd.size()]
    line = json.dumps([what, *place, state.step, time.time(), [digest()]]) + "\n"
    with log.open("a") as file:
        file.write(line)


def one_step(mine: list[int]) -> None:
    optimizer.zero_grad()
    # The mean over the pictures of all ranks, some of which may have none.
    F.cross_entropy(model(pictures[mine]), labels[mine], reduction="sum").div(BATCH).backward()
    optimizer.step()


def count(state: hvd.elastic.TorchState, mine: list[int]) -> None:
    """What all ranks have seen in this step is in the model."""
    last = dict(state.counts[-1])
    for sample in (one for part in hvd.allgather_object(mine, name="mine") for one in part):
        last[str(sample)] = last.get(str(sample), 0) + 1
    state.counts = [*state.counts[:-1], last]


@hvd.elastic.run
def train(state: hvd.elastic.TorchState) -> None:
    write("begins", state)
    while state.step < steps:
        if len(state.counts) <= ledger.epoch:
            state.counts = [*state.counts, {}]
        for mine in ledger.batches(BATCH):
            time.sleep(pause)
            one_step(mine)
            count(state, mine)
            state.step += 1
            write("did", state)
            state.commit()
            write("committed", state)
            if state.step == steps:
                return
        ledger.set_epoch(ledger.epoch + 1)


state = hvd.elastic.TorchState(model, optimizer, step=0, counts=[], ledger=ledger)
train(state)
write("ends", state)
with torch.no_grad():
    right = (model(pictures).argmax(1) == labels).float().mean().item()
if hvd.rank() == 0:
    log.with_suffix(".counts").write_text(json.dumps(state.counts))
    print(f"accuracy {right:.3f}", flush=True)
