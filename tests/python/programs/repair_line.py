# SPDX-License-Identifier: Apache-2.0
"""Training of one linear layer in which ranks die: `repair_line.py WAY STEPS RANK:STEP ...`.

WAY is tape, for a loop of TensorFlow with a tape, or commit or batch, for fit() of Keras whose
steps end at CommitStateCallback or at StepCallback. In the end each rank says its numbers, and
whether its weights are what they would be if each step had the ranks that were left in it.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

import numpy as np

WAY, STEPS = sys.argv[1], int(sys.argv[2])
DEATHS = {int(rank): int(step) for rank, step in (word.split(":") for word in sys.argv[3:])}
WIDTH, BATCH, RATE = 6, 8, 0.05

hvd = importlib.import_module("rueda.tensorflow" if WAY == "tape" else "rueda.keras")
hvd.init()
seat, size = hvd.rank(), hvd.size()
calls = 0


def batch_of(rank: int, step: int) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.random.default_rng(1000 * step + rank)
    inputs = numbers.normal(size=(BATCH, WIDTH)).astype(np.float32)
    return inputs, inputs.sum(1, keepdims=True)


def gradient_of(weights: np.ndarray, rank: int, step: int) -> np.ndarray:
    inputs, wanted = batch_of(rank, step)
    return 2 * inputs.T @ (inputs @ weights - wanted) / BATCH


def reference() -> np.ndarray:
    weights = np.zeros((WIDTH, 1))
    for step in range(STEPS):
        ranks = [rank for rank in range(size) if DEATHS.get(rank, STEPS) > step]
        weights -= RATE * sum(gradient_of(weights, rank, step) for rank in ranks) / len(ranks)
    return weights


def die_if(step: int) -> None:
    if DEATHS.get(seat) == step:
        os.kill(os.getpid(), signal.SIGKILL)


def train_by_tape() -> np.ndarray:
    import tensorflow as tf

    weights = tf.Variable(tf.zeros((WIDTH, 1)))

    @tf.function
    def one_step(inputs: Any, wanted: Any) -> None:
        with tf.GradientTape() as plain:
            loss = tf.reduce_mean(tf.square(inputs @ weights - wanted))
        tape = hvd.DistributedGradientTape(plain)
        weights.assign_sub(RATE * tape.gradient(loss, [weights])[0])

    @hvd.elastic.run(repair=True)
    def train(state: Any) -> None:
        global calls
        calls += 1
        while state.step < STEPS:
            die_if(state.step)
            one_step(*batch_of(seat, state.step))
            state.step += 1
            hvd.elastic.step()

    train(hvd.elastic.TensorFlowState([weights], step=0))
    return weights.numpy()


def train_by_fit() -> np.ndarray:
    import keras

    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((WIDTH,)), layer])
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(RATE)), "mse")

    class Batches(keras.utils.PyDataset):
        def __len__(self) -> int:
            return STEPS

        def __getitem__(self, step: int) -> tuple[np.ndarray, np.ndarray]:
            return batch_of(seat, step)

    class Deaths(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            die_if(batch)

    @hvd.elastic.run(repair=True)
    def train(state: Any) -> None:
        global calls
        calls += 1
        step = hvd.elastic.CommitStateCallback(state, 2)
        step = step if WAY == "commit" else hvd.elastic.StepCallback()
        model.fit(Batches(), epochs=1, callbacks=[step, Deaths()], verbose=0, shuffle=False)

    train(hvd.elastic.KerasState(model))
    return keras.ops.convert_to_numpy(layer.kernel)


found = train_by_tape() if WAY == "tape" else train_by_fit()
is_right = np.allclose(found, reference(), atol=1e-4)
print(f"was {seat} is {hvd.rank()} of {hvd.size()} calls {calls} right {is_right}", flush=True)
hvd.shutdown()
