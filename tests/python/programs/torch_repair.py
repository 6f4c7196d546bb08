# SPDX-License-Identifier: Apache-2.0
"""Training in which ranks die: `torch_repair.py STEPS RANK:STEP ...`.

A rank that dies does so in that step, before its backward pass, when others may be in
theirs. Without RUEDA_REPAIR the program turns repair on. At the end each rank says its
numbers, and its parameters as a digest, with what they would be if each step had the ranks
that were left in it.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys

import rueda.torch as hvd
import torch

STEPS = int(sys.argv[1])
DEATHS = {int(rank): int(step) for rank, step in (word.split(":") for word in sys.argv[2:])}
SIZES = (4, 300, 20, 1)


def make() -> torch.nn.Sequential:
    torch.manual_seed(1)
    layers = []
    for one, other in zip(SIZES, SIZES[1:]):
        layers += [torch.nn.Linear(one, other), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers).double()


def loss_of(model: torch.nn.Module, rank: int, step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    data = torch.randn(8, SIZES[0], generator=generator, dtype=torch.float64)
    return model(data).square().mean()


def reference(size: int) -> list[torch.Tensor]:
    """The parameters after all steps, in one process."""
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        ranks = [rank for rank in range(size) if DEATHS.get(rank, STEPS) > step]
        optimizer.zero_grad()
        (sum(loss_of(model, rank, step) for rank in ranks) / len(ranks)).backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def main() -> None:
    hvd.init()
    number, size = hvd.rank(), hvd.size()
    model = make()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters()
    )

    def train(state: hvd.elastic.TorchState) -> None:
        while state.step < STEPS:
            optimizer.zero_grad()
            loss = loss_of(model, number, state.step)
            if DEATHS.get(number) == state.step:
                os.kill(os.getpid(), signal.SIGKILL)
            loss.backward()
            optimizer.step()
            state.step += 1

    state = hvd.elastic.TorchState(model, optimizer, step=0)
    if "RUEDA_REPAIR" not in os.environ:
        train = hvd.elastic.run(repair=True)(train)
    train(state)
    found = [parameter.detach() for parameter in model.parameters()]
    is_right = all(map(torch.allclose, found, reference(size)))
    digest = hashlib.sha256(b"".join(one.numpy().tobytes() for one in found)).hexdigest()
    print(f"was {number} is {hvd.rank()} of {hvd.size()} {digest} {is_right}", flush=True)
    hvd.shutdown()


main()
