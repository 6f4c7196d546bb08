# SPDX-License-Identifier: Apache-2.0
"""Train by a strategy of TensorFlow: strategy_steps.py rueda|multiworker.

The same script but for the line that makes the strategy. Prints the losses of a loop of its
own and of Keras 2's fit() as JSON.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import rueda.tensorflow as hvd
import tensorflow as tf

GLOBAL_BATCH = 8
STEPS = 6

hvd.init()
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
given = os.environ.get("TF_CONFIG")
assert hvd.tf_config() == os.environ["TF_CONFIG"]
assert given in (None, os.environ["TF_CONFIG"]), "a TF_CONFIG that fits stays as it is"
if sys.argv[1] == "rueda":
    strategy = hvd.Strategy()
else:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
assert strategy.num_replicas_in_sync == hvd.size() and rank == hvd.rank()
tf.keras.utils.set_random_seed(1 + rank)  # each worker would begin with a model of its own

generator = np.random.default_rng(0)
X = generator.normal(size=(GLOBAL_BATCH * STEPS - 3, 5)).astype("float32")
Y = np.sin(X.sum(axis=1, keepdims=True)).astype("float32")


def dataset() -> tf.data.Dataset:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(GLOBAL_BATCH).with_options(options)


def own_loop() -> list[float]:
    """Two epochs; the last batch of each is smaller, and one worker's is smaller still."""
    with strategy.scope():
        weights = tf.Variable(tf.random.normal((5, 1)))
        table = tf.Variable(tf.random.normal((4, 1)))
        count = tf.Variable(
            0.0,
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)

    def replica_step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            guess = tf.nn.tanh(x @ weights) + tf.gather(table, [0, 1, 1])[1]
            loss = tf.reduce_sum(tf.square(guess - y)) / GLOBAL_BATCH
        gradients = tape.gradient(loss, [weights, table])  # the second is sparse
        optimizer.apply_gradients(zip(gradients, [weights, table]))
        count.assign_add(tf.cast(tf.shape(x)[0], tf.float32))
        return loss

    @tf.function
    def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        losses = strategy.run(replica_step, args=(x, y))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    @tf.function
    def largest(x: tf.Tensor) -> tf.Tensor:
        def replica(value: tf.Tensor) -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            mine = tf.cast(context.replica_id_in_sync_group + 1, value.dtype)
            return context.all_reduce("mean", mine) + tf.reduce_sum(
                context.all_gather(mine[None], 0)
            )

        return strategy.run(replica, args=(x,))

    losses = []
    for _ in range(2):
        losses += [
            float(step(x, y)) for x, y in strategy.experimental_distribute_dataset(dataset())
        ]
    losses.append(float(count.numpy()))
    losses.append(float(strategy.experimental_local_results(largest(tf.constant(0.0)))[0]))
    columns = strategy.run(lambda: tf.fill([2, rank + 1], float(rank)))
    losses += strategy.gather(columns, axis=1).numpy().ravel().tolist()
    return losses


def own_input() -> list[float]:
    """Each worker makes its input itself, of what it is told about its place."""

    def make(context: tf.distribute.InputContext) -> tf.data.Dataset:
        assert context.num_input_pipelines == hvd.size()
        assert context.input_pipeline_id == hvd.rank()
        batch = context.get_per_replica_batch_size(GLOBAL_BATCH)
        mine = tf.data.Dataset.from_tensor_slices(X)
        mine = mine.shard(context.num_input_pipelines, context.input_pipeline_id)
        return mine.batch(batch, drop_remainder=True)

    @tf.function
    def total(x: tf.Tensor) -> tf.Tensor:
        sums = strategy.run(lambda part: tf.reduce_sum(part * part), args=(x,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, sums, axis=None)

    sums = [float(total(x)) for x in strategy.distribute_datasets_from_function(make)]
    # Rank r has the rows r, r + size, ...: a step takes the next rows of the global order.
    wanted = [
        float(np.square(X[i : i + GLOBAL_BATCH]).sum())
        for i in range(0, len(X) // GLOBAL_BATCH * GLOBAL_BATCH, GLOBAL_BATCH)
    ]
    np.testing.assert_allclose(sums, wanted, rtol=1e-5)
    return sums


def keras_fit() -> list[float]:
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.layers.Dense(8, activation="tanh", input_shape=(5,)),
                tf.keras.layers.BatchNormalization(),
                tf.keras.layers.Dense(1),
            ]
        )
        model.compile(tf.keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    history = model.fit(dataset(), epochs=3, verbose=0, validation_data=dataset()).history
    total = sum(float(np.abs(value).sum()) for value in model.get_weights())
    guesses = model.predict(dataset(), verbose=0)
    assert guesses.shape == Y.shape, guesses.shape
    return [one for key in sorted(history) for one in history[key]] + [total]


def once(strategy_: tf.distribute.Strategy, value: tf.Tensor) -> tf.Tensor:
    """What merge_call() calls: once in this process."""
    return hvd.allreduce(strategy_.reduce("SUM", value, axis=None), op=hvd.Sum, name="once")


def merging() -> tf.Tensor:
    context = tf.distribute.get_replica_context()
    mine = tf.cast(context.replica_id_in_sync_group + 1, tf.float32)
    return context.merge_call(once, args=(mine,))


def ops_of_ours() -> None:
    """Collectives in replicas, in merge_call(), and in those of TensorFlow's own strategy."""
    ranks = float(hvd.size())

    @tf.function
    def alone() -> tf.Tensor:
        return strategy.run(lambda: hvd.allreduce(tf.constant(2.0), op=hvd.Sum, name="alone"))

    assert float(alone()) == 2 * ranks
    # Its reduce() has added up the numbers of all ranks already.
    total = sum(range(1, hvd.size() + 1))
    assert float(tf.function(lambda: strategy.run(merging))()) == total * ranks

    mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert mirrored.num_replicas_in_sync == 2
    merged = tf.function(lambda: mirrored.run(merging))()
    local = [float(one) for one in mirrored.experimental_local_results(merged)]
    assert set(local) == {(1 + 2) * ranks}, local
    with mirrored.scope():
        assert float(hvd.allreduce(tf.constant(1.0), op=hvd.Sum)) == ranks
    try:
        tf.function(lambda: mirrored.run(lambda: hvd.allreduce(tf.constant(1.0))))()
    except RuntimeError as error:
        assert "one of 2 replicas of this process (MirroredStrategy)" in str(error), error
    else:
        raise AssertionError("a collective in one of two replicas was accepted")


def another_tensorflow() -> None:
    """A version without something that the strategy stands on."""
    from tensorflow.python.distribute.mirrored_strategy import MirroredExtended

    kept = MirroredExtended._initialize_single_worker
    del MirroredExtended._initialize_single_worker
    try:
        hvd.Strategy()
    except NotImplementedError as error:
        assert "does not know TensorFlow" in str(error), error
        assert "_initialize_single_worker is missing" in str(error), error
    else:
        raise AssertionError("nothing was missed")
    finally:
        MirroredExtended._initialize_single_worker = kept


print(json.dumps({"loop": own_loop(), "input": own_input(), "fit": keras_fit()}))
if sys.argv[1] == "rueda":
    ops_of_ours()
    another_tensorflow()
hvd.shutdown()
