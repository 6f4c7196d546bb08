# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits, read by a small network of plain TensorFlow, on several workers.

    ruedarun -np 2 python digits.py

The data, 1797 pictures of 8 x 8 dots, comes with scikit-learn. Each worker trains on a
part of it; the tape averages the gradients of all workers in every step. The lines that
make a script for one process one for several are marked by "(n)"; there are six. With
--folder rank 0 keeps checkpoints there, and a second run goes on from the last one.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import rueda.tensorflow as hvd  # (1); "import horovod.tensorflow as hvd" is the same
import tensorflow as tf
from sklearn.datasets import load_digits

HELD_OUT = 360


class Network(tf.Module):
    """64 dots, 64 hidden values, 10 digits."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = [tf.Variable(tf.random.normal([64, 64], stddev=0.15)),
                        tf.Variable(tf.random.normal([64, 10], stddev=0.15))]  # fmt: skip
        self.biases = [tf.Variable(tf.zeros([64])), tf.Variable(tf.zeros([10]))]

    def __call__(self, pictures: Any) -> Any:
        hidden = tf.nn.relu(pictures @ self.weights[0] + self.biases[0])
        return hidden @ self.weights[1] + self.biases[1]


class Checkpoints:
    """What rank 0 writes after each epoch and all ranks read."""

    def __init__(self, network: Network, folder: str | None) -> None:
        self.epoch = tf.Variable(0, trainable=False)
        self.manager = None
        if folder is None:
            return
        checkpoint = tf.train.Checkpoint(network=network, epoch=self.epoch)
        self.manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        # All read the same one, though rank 0 may have begun to write the next.
        latest = hvd.broadcast_object(self.manager.latest_checkpoint)
        if latest is not None and os.path.exists(f"{latest}.index"):
            checkpoint.restore(latest).expect_partial()
        # Workers that do not see the folder of rank 0 get its values in this way.
        hvd.broadcast_variables([self.epoch], root_rank=0)

    def save(self, epoch: int) -> None:
        self.epoch.assign(epoch)
        if self.manager is not None and hvd.is_master():
            self.manager.save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--folder", help="for checkpoints")
    options = parser.parse_args()

    hvd.init()  # (2)
    digits = load_digits()
    pictures = (digits.images.reshape(-1, 64) / 16).astype("float32")
    train = tf.data.Dataset.from_tensor_slices(
        (pictures[HELD_OUT:], digits.target[HELD_OUT:].astype("int32"))
    )
    train = train.shard(hvd.size(), hvd.rank())  # (3)
    train = train.shuffle(2000, seed=1).batch(options.batch, drop_remainder=True)
    network = Network()
    checkpoints = Checkpoints(network, options.folder)
    rate = 0.1 * hvd.size()  # (4)
    hvd.broadcast_variables(network.trainable_variables, root_rank=0)  # (5)

    @tf.function
    def step(pictures: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, network(pictures))
            loss = tf.reduce_mean(losses)
        tape = hvd.DistributedGradientTape(tape)  # (6)
        gradients = tape.gradient(loss, network.trainable_variables)
        for variable, gradient in zip(network.trainable_variables, gradients):
            variable.assign_sub(rate * gradient)
        return loss

    # All workers do as many steps: the smallest part decides.
    steps = (len(pictures) - HELD_OUT) // hvd.size() // options.batch
    begin = int(checkpoints.epoch)
    if hvd.is_master() and begin > 0:
        print(f"goes on from epoch {begin}", flush=True)
    for epoch in range(begin, options.epochs):
        for batch in train.take(steps):
            loss = step(*batch)
        loss = hvd.allreduce(loss)
        checkpoints.save(epoch + 1)
        if hvd.is_master() and epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {float(loss):.3f}", flush=True)
    found = tf.argmax(network(pictures[:HELD_OUT]), axis=1).numpy()
    if hvd.is_master():
        right = (found == digits.target[:HELD_OUT]).mean()
        print(f"{hvd.size()} workers: {right:.1%} of {HELD_OUT} pictures")


if __name__ == "__main__":
    main()
