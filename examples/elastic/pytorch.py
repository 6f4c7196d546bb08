# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits, read by a small network, while workers come and go.

    ruedarun -np 3 --min-np 1 -H localhost:3 python pytorch.py
    ruedarun -np 2 --min-np 1 --host-discovery-script ./hosts.sh python pytorch.py

Kill a worker and the others go on from the last commit; name more hosts in the
script and new workers join. What makes a script elastic is marked by "(n)".
"""

from __future__ import annotations

import argparse
import os
import signal

import rueda.torch as hvd  # "import horovod.torch as hvd" is the same
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

HELD_OUT = 360


def load() -> tuple[TensorDataset, TensorDataset]:
    """What to train on, and what to keep for the test; the same on all workers."""
    digits = load_digits()
    pictures = torch.tensor(digits.images, dtype=torch.float32).flatten(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    train, test = order[HELD_OUT:], order[:HELD_OUT]
    return TensorDataset(pictures[train], labels[train]), TensorDataset(
        pictures[test], labels[test]
    )


def accuracy(model: nn.Module, data: TensorDataset) -> float:
    pictures, labels = data.tensors
    with torch.no_grad():
        return (model(pictures).argmax(1) == labels).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=15, help="(%(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="of each worker (%(default)s)")
    parser.add_argument("--rate", type=float, default=0.05, help="of one worker (%(default)s)")
    parser.add_argument("--kill", help="EPOCH:RANK, a worker that kills itself, to see it work")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the workers share the cores
    hvd.init()
    torch.manual_seed(1)
    train_set, test_set = load()
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    sampler = hvd.elastic.ElasticSampler(train_set)  # (1) divides what is left of an epoch
    loader = DataLoader(train_set, batch_size=options.batch, sampler=sampler)

    @hvd.elastic.run  # (2) calls it again, with the workers that there are
    def train(state: hvd.elastic.TorchState) -> None:
        while state.epoch < options.epochs:
            for number, (pictures, labels) in enumerate(loader):
                if options.kill == f"{state.epoch}:{hvd.rank()}" and state.size == hvd.size():
                    os.kill(os.getpid(), signal.SIGKILL)
                optimizer.zero_grad()
                loss = F.cross_entropy(model(pictures), labels)
                loss.backward()
                optimizer.step()
                sampler.record_batch(number, options.batch)  # (3)
                state.commit()  # (4) what a lost worker cannot take with it
            if hvd.rank() == 0:
                print(f"epoch {state.epoch + 1}: {hvd.size()} workers, loss {loss.item():.3f}")
            state.epoch += 1
            sampler.set_epoch(state.epoch)
            state.commit()

    # (5) all that has to survive; size: of the workers at the start
    state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0, size=hvd.size())
    train(state)
    if hvd.rank() == 0:
        right = 100 * accuracy(model, test_set)
        print(f"{hvd.size()} workers at the end: {right:.1f} % of {HELD_OUT} pictures are right")
    hvd.shutdown()


if __name__ == "__main__":
    main()
