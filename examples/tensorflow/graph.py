# SPDX-License-Identifier: Apache-2.0
"""A line through points, fitted in the style of TensorFlow 1: a graph and a session.

    ruedarun -np 2 python graph.py

Each worker has points of its own. The optimizer averages the gradients, and the hook
makes all workers begin with the variables of rank 0.
"""

from __future__ import annotations

import numpy as np
import rueda.tensorflow as hvd
import tensorflow.compat.v1 as tf

STEPS = 200


def main() -> None:
    tf.disable_eager_execution()
    hvd.init()
    random = np.random.RandomState(hvd.rank())
    x = random.uniform(-1, 1, [100]).astype("float32")
    y = 3 * x + 2 + random.normal(0, 0.01, [100]).astype("float32")

    slope = tf.get_variable("slope", initializer=tf.random.normal([]))
    start = tf.get_variable("start", initializer=tf.random.normal([]))
    loss = tf.reduce_mean(tf.square(slope * x + start - y))
    optimizer = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.1 * hvd.size()))
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(loss, global_step=step)

    hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=STEPS)]
    with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        while not session.should_stop():
            _, found = session.run([train, [slope, start]])
    everywhere = hvd.allgather_object([float(value) for value in found])
    if hvd.is_master():
        print(f"{hvd.size()} workers: y = {found[0]:.2f} x + {found[1]:.2f}")
        print("all workers agree" if len(set(map(tuple, everywhere))) == 1 else "they differ")


if __name__ == "__main__":
    main()
