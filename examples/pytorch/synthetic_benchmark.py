# SPDX-License-Identifier: Apache-2.0
"""How many pictures a second all workers train on together. The pictures are noise.

    ruedarun -np 2 python synthetic_benchmark.py
    ruedarun -np 2 python synthetic_benchmark.py --model resnet50 --compress fp16

Compare with one worker alone: what is missing to twice as many is the cost of
communication, and of cores that share caches and memory.
"""

from __future__ import annotations

import argparse
import statistics
import time

import rueda.torch as hvd
import torch
import torch.nn.functional as F
from torch import nn

CLASSES = 1000


class Block(nn.Module):
    """Two convolutions, or three of which the outer ones are narrow, and a way around them."""

    def __init__(self, width: int, out: int, stride: int, is_deep: bool) -> None:
        super().__init__()
        inner = out // 4 if is_deep else out
        shapes = (
            [(width, inner, 1, 1), (inner, inner, 3, stride), (inner, out, 1, 1)]
            if is_deep
            else [(width, inner, 3, stride), (inner, out, 3, 1)]
        )
        layers: list[nn.Module] = []
        for inputs, outputs, kernel, step in shapes:
            layers += [
                nn.Conv2d(inputs, outputs, kernel, step, kernel // 2, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
            ]
        self.way = nn.Sequential(*layers[:-1])
        self.around: nn.Module = nn.Identity()
        if stride != 1 or width != out:
            self.around = nn.Sequential(
                nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.way(x) + self.around(x))


def resnet(counts: tuple[int, ...], is_deep: bool) -> nn.Module:
    """A residual network (He and others, 2015) with these numbers of blocks in its stages."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]  # fmt: skip
    width = 64
    for stage, count in enumerate(counts):
        out = (64 << stage) * (4 if is_deep else 1)
        for i in range(count):
            layers.append(Block(width, out, 2 if stage > 0 and i == 0 else 1, is_deep))
            width = out
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES)
    )


MODELS = {
    "resnet18": lambda: resnet((2, 2, 2, 2), is_deep=False),
    "resnet34": lambda: resnet((3, 4, 6, 3), is_deep=False),
    "resnet50": lambda: resnet((3, 4, 6, 3), is_deep=True),
}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, default="resnet18", help="(%(default)s)")
    parser.add_argument("--batch", type=int, default=8, help="of each worker (%(default)s)")
    parser.add_argument("--side", type=int, default=224, help="of a picture, dots (%(default)s)")
    parser.add_argument("--warm-up", type=int, default=2, help="steps before (%(default)s)")
    parser.add_argument("--steps", type=int, default=5, help="in a turn (%(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="each gives a figure (%(default)s)")
    parser.add_argument("--compress", choices=("none", "fp16"), default="none",
                        help="gradients on their way (%(default)s)")  # fmt: skip
    parser.add_argument("--adasum", action="store_true", help="in place of the average")
    return parser.parse_args()


def main() -> None:
    options = parse()
    hvd.init()
    torch.manual_seed(0)
    model = MODELS[options.model]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=model.named_parameters(),
        compression=getattr(hvd.Compression, options.compress),
        op=hvd.Adasum if options.adasum else hvd.Average,
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    pictures = torch.randn(options.batch, 3, options.side, options.side)
    labels = torch.randint(CLASSES, (options.batch,))

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(pictures), labels).backward()
        optimizer.step()

    def say(words: str) -> None:
        if hvd.rank() == 0:
            print(words, flush=True)

    numbers = sum(one.numel() for one in model.parameters())
    say(f"{options.model}, {numbers / 1e6:.1f} million numbers, {hvd.size()} workers")
    for _ in range(options.warm_up):
        step()
    rates = []
    for turn in range(options.turns):
        began = time.perf_counter()
        for _ in range(options.steps):
            step()
        rates.append(options.batch * options.steps / (time.perf_counter() - began))
        say(f"turn {turn + 1}: {rates[-1]:.1f} pictures a second and worker")
    middle, spread = statistics.median(rates), max(rates) - min(rates)
    say(f"{hvd.size()} workers: {hvd.size() * middle:.1f} pictures a second, "
        f"{middle:.1f} each (from least to most {spread:.1f})")  # fmt: skip
    hvd.shutdown()


if __name__ == "__main__":
    main()
