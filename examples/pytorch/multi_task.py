# SPDX-License-Identifier: Apache-2.0
"""Several tasks, one trunk: losses, heads and process sets.

    ruedarun -np 4 python multi_task.py

Every rank has data of one task only: even ranks of a regression, odd ranks of a
classification. All of them train one trunk together. In a step a rank uses only
the head of its task; for the other one it contributes zeros, because
DistributedOptimizer hands over every parameter in the end, used or not. So the
gradient of a head is divided by *all* ranks, though only some computed one.

Each head can instead have an optimizer of its own among the ranks of its task:
those are a process set. Then its gradient is divided by those ranks, and no
other rank hears of it. That is what this program does with --own-sets; other
ranks get the finished heads at the end.
"""

from __future__ import annotations

import argparse

import rueda.torch as hvd
import torch
from torch import nn

TASKS = ("regression", "classes")
STEPS = 300


class TwoTasks(nn.Module):
    """What both tasks share, and a head for each."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh())
        self.heads = nn.ModuleDict({"regression": nn.Linear(16, 1), "classes": nn.Linear(16, 2)})

    def forward(self, x: torch.Tensor, task: str) -> torch.Tensor:
        return self.heads[task](self.trunk(x))


def batch(task: str, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Data of a task: both ask for the sum of the first numbers, each in its way."""
    x = torch.randn(64, 8, generator=generator)
    total = x[:, :4].sum(1)
    return x, (total.unsqueeze(1) if task == "regression" else (total > 0).long())


def loss_of(model: nn.Module, task: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    answer = model(x, task)
    if task == "regression":
        return nn.functional.mse_loss(answer, y)
    return nn.functional.cross_entropy(answer, y)


def optimizers_of(model: TwoTasks, own_sets: bool) -> list[torch.optim.Optimizer]:
    """One for everything, or one for the trunk and one for each head."""
    if not own_sets:
        plain = torch.optim.Adam(model.parameters(), lr=0.01)
        return [hvd.DistributedOptimizer(plain, model.named_parameters())]
    made = [
        hvd.DistributedOptimizer(
            torch.optim.Adam(model.trunk.parameters(), lr=0.01),
            model.trunk.named_parameters(prefix="trunk"),
        )
    ]
    for number, task in enumerate(TASKS):
        # All ranks make all sets, in the same order, members or not.
        members = hvd.add_process_set(range(number, hvd.size(), len(TASKS)))
        if members.included():
            head = model.heads[task]
            made.append(
                hvd.DistributedOptimizer(
                    torch.optim.Adam(head.parameters(), lr=0.01),
                    head.named_parameters(prefix=task),
                    process_set=members,
                )
            )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--own-sets", action="store_true", help="a process set for each task")
    options = parser.parse_args()

    hvd.init(process_sets="dynamic")
    task = TASKS[hvd.rank() % len(TASKS)]
    torch.manual_seed(0)
    model = TwoTasks()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizers = optimizers_of(model, options.own_sets and hvd.size() > 1)
    generator = torch.Generator().manual_seed(1 + hvd.rank())

    for _ in range(STEPS):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss_of(model, task, *batch(task, generator)).backward()
        for optimizer in optimizers:
            optimizer.step()

    for number, name in enumerate(TASKS):
        # The first rank of each task hands out its head.
        head = model.heads[name].state_dict()
        hvd.broadcast_parameters(head, root_rank=number if number < hvd.size() else 0)
    generator.manual_seed(1000)
    with torch.no_grad():
        losses = [loss_of(model, name, *batch(name, generator)).item() for name in TASKS]
    if hvd.rank() == 0:
        words = ", ".join(f"{name} {loss:.3f}" for name, loss in zip(TASKS, losses))
        print(f"losses after {STEPS} steps: {words}", flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
