# SPDX-License-Identifier: Apache-2.0
"""Rank 1 meets bad data in its third step; the others wait for its gradients."""

import importlib
import signal
import sys

import torch

hvd = importlib.import_module(f"{sys.argv[1]}.torch")

hvd.init()
if hvd.rank() != 1:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # to say what it has to say
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)


def batch(step):
    if hvd.rank() == 1 and step == 2:
        raise ValueError("line 7 of the data has no label")
    return torch.ones(3, 4)


for step in range(5):
    optimizer.zero_grad()
    loss = model(batch(step)).sum()
    loss.backward()
    optimizer.step()
print("not reached", flush=True)
