# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits, read by a small convolutional network, on several workers.

    ruedarun -np 2 python digits.py

The data, 1797 pictures of 8 x 8 dots, comes with scikit-learn. Each worker
trains on a part of it; the gradients of all are averaged in every step, so that
all have the same network at any time. The lines that make a script for one
process one for several are marked by "(n)"; there are eight.
"""

from __future__ import annotations

import argparse
import sys
import time

import rueda.torch as hvd  # (1); "import horovod.torch as hvd" is the same
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

HELD_OUT = 360
BAR_WIDTH = 30


def load() -> tuple[TensorDataset, TensorDataset]:
    """What to train on, and what to keep for the test; the same on all workers."""
    digits = load_digits()
    pictures = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    train, test = order[HELD_OUT:], order[:HELD_OUT]
    return TensorDataset(pictures[train], labels[train]), TensorDataset(
        pictures[test], labels[test]
    )


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(64 * 2 * 2, 10),
    )  # fmt: skip


class Bar:
    """A progress bar on one line of rank 0; the others print nothing."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.shown = -1

    def show(self, done: int, words: str) -> None:
        filled = BAR_WIDTH * done // self.total
        if hvd.rank() != 0 or (filled == self.shown and done < self.total):
            return
        self.shown = filled
        bar = "#" * filled + "." * (BAR_WIDTH - filled)
        end = "\n" if done == self.total else "\r"
        sys.stdout.write(f"[{bar}] {100 * done // self.total:3d} %  {words}{end}")
        sys.stdout.flush()


def accuracy(model: nn.Module, data: TensorDataset) -> float:
    """Over the whole set: each worker looks at its part, and the counts are added up."""
    pictures, labels = data.tensors
    part = slice(hvd.rank(), None, hvd.size())
    model.eval()
    with torch.no_grad():
        right = (model(pictures[part]).argmax(1) == labels[part]).sum()
    right = hvd.allreduce(right, op=hvd.Sum, name="right answers")  # (8)
    return right.item() / len(labels)


def train(epochs: int, batch: int, rate: float) -> float:
    hvd.init()  # (2)
    torch.manual_seed(hvd.rank())  # dropout should differ between workers
    train_set, test_set = load()
    sampler = DistributedSampler(train_set, hvd.size(), hvd.rank())  # (3)
    loader = DataLoader(train_set, batch_size=batch, sampler=sampler)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate * hvd.size())  # (4)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)  # (5)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)  # (6)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())  # (7)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

    bar = Bar(epochs * len(loader))
    step = 0
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        model.train()
        for pictures, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(pictures), labels)
            loss.backward()
            optimizer.step()
            step += 1
            bar.show(step, f"epoch {epoch + 1:2d} of {epochs}  loss {loss.item():.4f}")
        schedule.step()
    return accuracy(model, test_set)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=20, help="(%(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="of each worker (%(default)s)")
    parser.add_argument("--rate", type=float, default=0.002, help="of one worker (%(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the workers share the cores
    began = time.perf_counter()
    right = train(options.epochs, options.batch, options.rate)
    if hvd.rank() == 0:
        seconds = time.perf_counter() - began
        print(
            f"{hvd.size()} workers, {seconds:.1f} s: {100 * right:.1f} % of {HELD_OUT} "
            "pictures that they had never seen are read right"
        )
    hvd.shutdown()


if __name__ == "__main__":
    main()
