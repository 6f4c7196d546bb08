# SPDX-License-Identifier: Apache-2.0
"""Trains a layer whose parameters differ on rank 1 from step 3 on, and prints the warnings.

argv: the number of steps.
"""

import sys
import warnings

import rueda.torch as hvd
import torch

hvd.init()
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.1), list(model.named_parameters())
)
warnings.simplefilter("always")
for step in range(int(sys.argv[1])):
    if step == 3 and hvd.rank() == 1:
        with torch.no_grad():
            model.weight += 1
    optimizer.zero_grad()
    model(torch.ones(1, 4)).sum().backward()
    with warnings.catch_warnings(record=True) as seen:
        optimizer.step()
    for one in seen:
        print(f"step {step}: {one.message}")
