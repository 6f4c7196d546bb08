# SPDX-License-Identifier: Apache-2.0
"""Ranks with different numbers of batches: a rank that is done joins.

    ruedarun -np 4 python uneven_join.py

A rank that has joined takes part in the others' allreduces with zeros, until
all have joined. Average still divides by the number of all ranks, so the last
steps, made by few ranks, are small ones. join() returns the rank that joined
last: its model has seen every step, so the others take it over.
"""

from __future__ import annotations

import rueda.torch as hvd
import torch
from torch import nn


def main() -> None:
    hvd.init()
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.05), model.named_parameters()
    )
    generator = torch.Generator().manual_seed(1 + hvd.rank())
    batches = 100 + 20 * hvd.rank()
    for _ in range(batches):
        x = torch.randn(16, 4, generator=generator)
        y = x.sum(1, keepdim=True)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    last = hvd.join()
    hvd.broadcast_parameters(model.state_dict(), root_rank=last)
    error = (model.weight - 1).abs().max().item()
    lines = hvd.allgather_object(
        f"rank {hvd.rank()}: {batches} batches, the largest error of a weight is {error:.3f}"
    )
    if hvd.rank() == 0:
        print("\n".join([*lines, f"rank {last} joined last"]), flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
