# SPDX-License-Identifier: Apache-2.0
"""Some steps of a small model; arguments: what gradients= is, or nothing."""

from __future__ import annotations

import sys

import rueda.torch as hvd
import torch

hvd.init()
torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
way = sys.argv[1] if len(sys.argv) > 1 else None
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), gradients=way
)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.full((2, 4), 1.0 + hvd.rank())).sum().backward()
    optimizer.step()
    mean = sum(2.0 + 2.0 * rank for rank in range(hvd.size())) / hvd.size()
    assert torch.allclose(model.weight.grad, torch.full((3, 4), mean)), model.weight.grad
print("passed", flush=True)
hvd.shutdown()
