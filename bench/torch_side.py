# SPDX-License-Identifier: Apache-2.0
"""One rank of one side of bench/torch: it does what lines on its input ask for.

    torch_side.py none|gloo|rueda|repair

A line is a JSON list, what to do and with what; so is the answer, which has a
time in seconds for each repetition. Between lines the rank sleeps in a read, so
that the sides take turns.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Callable

import torch
from torch import nn


class Many(nn.Module):
    """400 small tensors: all of its cost is bookkeeping."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.ParameterList([nn.Parameter(torch.full((1024,), 0.01)) for _ in range(400)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for row in self.rows:
            x = x + row * 0.1
        return x[:, :10]


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)
    )


def conv() -> nn.Module:
    layers: list[nn.Module] = []
    width = 3
    for out in (32, 64, 128, 128):
        layers += [nn.Conv2d(width, out, 3, stride=2, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
        width = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    return nn.Sequential(encoder, nn.Flatten(), nn.Linear(256 * 32, 10))


#: A model, and the shape of what it takes.
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (mlp, (16, 1024)),
    "transformer": (transformer, (8, 32, 256)),
    "conv": (conv, (16, 3, 64, 64)),
    "many": (Many, (4, 1024)),
}


class Alone:
    """Ranks that know nothing of each other."""

    rank, size = int(os.environ["BENCH_RANK"]), 1

    def spread(self, net: nn.Module, optimizer: Any) -> tuple[nn.Module, Any]:
        return net, optimizer

    def allreduce(self, tensor: torch.Tensor, name: str) -> None:
        raise NotImplementedError("ranks that are alone add nothing up")

    def copy(self, net: nn.Module, _: Any) -> tuple[nn.Module, Any]:
        return net, None


class Gloo(Alone):
    def __init__(self) -> None:
        import torch.distributed as dist

        dist.init_process_group("gloo")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._dist = dist

    def spread(self, net: nn.Module, optimizer: Any) -> tuple[nn.Module, Any]:
        return nn.parallel.DistributedDataParallel(net), optimizer

    def allreduce(self, tensor: torch.Tensor, name: str) -> None:
        self._dist.all_reduce(tensor)


class Meeting:
    """An optimizer whose ranks wait for each other before each step, and do no more."""

    def __init__(self, optimizer: Any, meet: Callable[[], None]) -> None:
        self.zero_grad, self._step, self._meet = optimizer.zero_grad, optimizer.step, meet

    def step(self) -> None:
        self._meet()
        self._step()


class Rueda(Alone):
    def __init__(self) -> None:
        import rueda.torch as hvd

        hvd.init()
        self.rank, self.size = hvd.rank(), hvd.size()
        self._hvd = hvd

    def spread(self, net: nn.Module, optimizer: Any) -> tuple[nn.Module, Any]:
        self._hvd.broadcast_parameters(net.state_dict(), root_rank=0)
        way = os.environ.get("BENCH_GRADIENTS") or None
        return net, self._hvd.DistributedOptimizer(optimizer, net.named_parameters(), gradients=way)

    def meet(self, net: nn.Module, optimizer: Any) -> tuple[nn.Module, Any]:
        return net, Meeting(optimizer, self._hvd.barrier)

    def allreduce(self, tensor: torch.Tensor, name: str) -> None:
        self._hvd.allreduce_(tensor, op=self._hvd.Sum, name=name)


# repair is Rueda with RUEDA_REPAIR=1, which its environment says.
SIDES: dict[str, type[Alone]] = {"none": Alone, "gloo": Gloo, "rueda": Rueda, "repair": Rueda}


class Training:
    """A model that is trained on the same batch over and over."""

    def __init__(self, connect: Callable[..., Any], rank: int, kind: str) -> None:
        make, shape = MODELS[kind]
        torch.manual_seed(0)
        net = make()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0005, momentum=0.9)
        self._net, self._optimizer = connect(net, optimizer)
        torch.manual_seed(rank)
        self._x, self._y = torch.randn(shape), torch.randint(10, (shape[0],))

        # What is read and written where memory is all that limits a step.
        numbers = sum(param.numel() for param in net.parameters())
        self._from, self._to = torch.zeros(numbers), torch.zeros(numbers)

    def copies(self, count: int) -> list:
        times = []
        for _ in range(count):
            began = time.perf_counter()
            self._to.copy_(self._from)
            times.append(time.perf_counter() - began)
        return [times, 0.0]

    def steps(self, count: int) -> list:
        if self._optimizer is None:
            return self.copies(count)
        times, loss = [], 0.0
        for _ in range(count):
            began = time.perf_counter()
            self._optimizer.zero_grad()
            loss_now = nn.functional.cross_entropy(self._net(self._x), self._y)
            loss_now.backward()
            self._optimizer.step()
            times.append(time.perf_counter() - began)
            loss = loss_now.item()
        return [times, loss]


def allreduces(side: Alone, length: int, count: int) -> list:
    """Times of allreduces in place of float32, by number and bytes; each result is checked."""
    tensor, start = torch.empty(length // 4), torch.zeros(1)
    want = side.size * (side.size + 1) / 2
    times = []
    for _ in range(count):
        tensor.fill_(side.rank + 1.0)
        side.allreduce(start, "start")  # all begin together
        began = time.perf_counter()
        side.allreduce(tensor, f"bytes {length}")
        times.append(time.perf_counter() - began)
        if not bool((tensor == want).all()):
            raise ArithmeticError(f"{length} bytes: the sum is not {want}")
    return [times]


def main() -> None:
    # Answers have the standard output for themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    torch.set_num_threads(1)
    side = SIDES[sys.argv[1]]()
    trainings: dict[tuple[str, str], Training] = {}
    answers.write('["ready"]\n')
    for line in sys.stdin:
        what, *args = json.loads(line)
        if what == "allreduce":
            answer = allreduces(side, *args)
        else:
            kind, count = args
            if (what, kind) not in trainings:
                trainings[what, kind] = Training(getattr(side, what), side.rank, kind)
            answer = trainings[what, kind].steps(count)
        answers.write(json.dumps(answer) + "\n")
    # Peers may be gone already, and Gloo would complain.
    os._exit(0)


if __name__ == "__main__":
    main()
