# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits, read by a network of Keras 3, while workers come and go.

    KERAS_BACKEND=torch ruedarun -np 3 --min-np 1 -H localhost:3 python keras_digits.py
    KERAS_BACKEND=torch ruedarun -np 3 --min-np 1 -H localhost:3 python keras_digits.py --to copies

Kill a worker and the others go on from the last commit. A ledger hands out the pictures, so
that each epoch has each of them once. With --to the state is also written into a folder, from
which another job goes on. What makes a script elastic is marked by "(n)".
"""

from __future__ import annotations

import argparse
import os
import signal
from typing import Any

import keras
import rueda.keras as hvd  # "import horovod.keras as hvd" is the same
from rueda.data import Ledger
from sklearn.datasets import load_digits

HELD_OUT = 360


def load() -> tuple[Any, Any]:
    digits = load_digits()
    return digits.images.reshape(-1, 64).astype("float32") / 16, digits.target


def compiled(rate: float) -> keras.Model:
    keras.utils.set_random_seed(1)
    layers = keras.layers
    model = keras.Sequential(
        [keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(10)]
    )
    model.compile(
        hvd.DistributedOptimizer(keras.optimizers.SGD(rate, momentum=0.9)),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=6, help="(%(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="of each worker (%(default)s)")
    parser.add_argument("--rate", type=float, default=0.05, help="(%(default)s)")
    parser.add_argument("--kill", help="EPOCH:RANK, a worker that kills itself, to see it work")
    parser.add_argument("--to", help="a folder or URL for durable commits, one for each epoch")
    options = parser.parse_args()
    hvd.init()
    pictures, labels = load()
    model = compiled(options.rate)
    ledger = Ledger(len(labels) - HELD_OUT)  # (1) knows what of an epoch is done

    @hvd.elastic.run  # (2) calls it again, with the workers that there are
    def train(state: hvd.elastic.KerasState) -> None:
        while state.epoch < options.epochs:
            loss = float("nan")
            for mine in ledger.batches(options.batch):  # (3)
                if options.kill == f"{state.epoch}:{hvd.rank()}" and state.size == hvd.size():
                    os.kill(os.getpid(), signal.SIGKILL)
                loss, _ = model.train_on_batch(pictures[mine], labels[mine])
                state.commit()  # (4) what a lost worker cannot take with it
            if hvd.is_master():
                print(f"epoch {state.epoch + 1}: {hvd.size()} workers, loss {loss:.3f}", flush=True)
            state.epoch += 1
            ledger.set_epoch(state.epoch)
            state.commit(to=options.to)

    # (5) all that has to survive; size: of the workers at the start
    state = hvd.elastic.KerasState(model, ledger=ledger, epoch=0, size=hvd.size())
    if options.to is not None and state.load(options.to) and hvd.is_master():
        print(f"goes on from epoch {state.epoch}", flush=True)
    train(state)
    if hvd.is_master():
        test = model.evaluate(pictures[-HELD_OUT:], labels[-HELD_OUT:], verbose=0, return_dict=True)
        right = 100 * test["accuracy"]
        print(f"{hvd.size()} workers at the end: {right:.1f} % of {HELD_OUT} pictures are right")
    hvd.shutdown()


if __name__ == "__main__":
    main()
