# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits, read by a small convolutional network, on several workers.

    KERAS_BACKEND=torch ruedarun -np 2 python digits.py --folder results

The same script runs on the back ends tensorflow, torch and jax of Keras 3. The data, 1797
pictures of 8 x 8 dots, comes with scikit-learn. In the folder rank 0 leaves the best model
(digits.keras) and, if TensorFlow and TensorBoard are installed, the metrics for TensorBoard,
averaged over the workers. A second run goes on from the model in the folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import time
from typing import Any

import keras
import rueda.keras as hvd  # "import horovod.keras as hvd" is the same
from sklearn.datasets import load_digits

HELD_OUT = 360


def load(is_whole: bool) -> tuple[Any, Any, Any, Any]:
    """What I train on, my share or all of it, and what is kept for the test."""
    digits = load_digits()
    pictures = digits.images[..., None].astype("float32") / 16
    labels = digits.target
    # Every worker takes the same number of steps, so all shares have the same length.
    count = (len(labels) - HELD_OUT) // hvd.size() * hvd.size()
    mine = slice(count) if is_whole else slice(hvd.rank(), count, hvd.size())
    return pictures[mine], labels[mine], pictures[-HELD_OUT:], labels[-HELD_OUT:]


def network() -> keras.Model:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPool2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(10),
        ]
    )


def compiled(rate: float) -> keras.Model:
    """A network whose learning rate is that of one worker times their number."""
    model = network()
    model.compile(
        hvd.DistributedOptimizer(keras.optimizers.Adam(rate * hvd.size())),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def callbacks_for(folder: str | None, rate: float, epochs: int) -> list[Any]:
    """The order matters: metrics are averaged before others look at them."""
    full_rate = rate * hvd.size()
    warm_up = min(3, epochs)
    chosen: list[Any] = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(full_rate, warmup_epochs=warm_up),
        hvd.callbacks.LearningRateScheduleCallback(full_rate, 0.8, start_epoch=warm_up),
    ]
    if folder is None or not hvd.is_master():
        return chosen
    chosen.append(
        hvd.callbacks.BestModelCheckpoint(
            monitor="val_accuracy", mode="max", filepath=os.path.join(folder, "digits.keras")
        )
    )
    if all(importlib.util.find_spec(tool) for tool in ("tensorflow", "tensorboard")):
        chosen.append(keras.callbacks.TensorBoard(os.path.join(folder, "logs"), write_graph=False))
    return chosen


def train(
    epochs: int, batch: int, rate: float, folder: str | None, is_whole: bool
) -> tuple[float, int]:
    """Return how much is read right, and the number of steps."""
    hvd.init()
    keras.utils.set_random_seed(1 + hvd.rank())
    x, y, test_x, test_y = load(is_whole)
    if is_whole:
        # Together the workers see all pictures as often as one would in these epochs.
        epochs = math.ceil(epochs / hvd.size())
    saved = None if folder is None else os.path.join(folder, "digits.keras")
    # Rank 0 has the file, and the broadcast gives the others what it has read.
    is_there = hvd.broadcast_object(saved is not None and os.path.exists(saved))
    model = hvd.load_model(saved) if is_there and hvd.is_master() else compiled(rate)
    model.fit(
        x, y, batch_size=batch, epochs=epochs, validation_data=(test_x, test_y),
        callbacks=callbacks_for(folder, rate, epochs),
        verbose=2 if hvd.is_master() else 0,
    )  # fmt: skip
    right = model.evaluate(test_x, test_y, verbose=0, return_dict=True)["accuracy"]
    return float(right), epochs * math.ceil(len(x) / batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=8, help="(%(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="of each worker (%(default)s)")
    parser.add_argument("--rate", type=float, default=0.002, help="of one worker (%(default)s)")
    parser.add_argument("--folder", help="for the model and the metrics")
    parser.add_argument(
        "--whole", action="store_true",
        help="each worker takes all pictures, in an order of its own, and its part of the epochs",
    )  # fmt: skip
    options = parser.parse_args()
    began = time.perf_counter()
    right, steps = train(
        options.epochs, options.batch, options.rate, options.folder, options.whole
    )
    if hvd.is_master():
        print(
            f"{hvd.size()} workers on {keras.backend.backend()}, {steps} steps, "
            f"{time.perf_counter() - began:.1f} s: {100 * right:.1f} % of {HELD_OUT} pictures "
            "that they had never seen are read right"
        )
    hvd.shutdown()


if __name__ == "__main__":
    main()
