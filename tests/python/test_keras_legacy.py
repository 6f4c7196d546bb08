# SPDX-License-Identifier: Apache-2.0
"""Keras 2, as tf_keras, with TF_USE_LEGACY_KERAS=1: two ranks do what one process does."""

from __future__ import annotations

import os
import tempfile
import warnings
from typing import Any

from rank_cases import cases_of, run_cases

if "TF_USE_LEGACY_KERAS" in os.environ:
    import numpy as np
    import rueda.tensorflow.keras as hvd
    import tensorflow as tf
    import tf_keras as keras

    tf.config.threading.set_intra_op_parallelism_threads(1)

ROWS, STEPS = 4, 3


def data(ranks: list[int]) -> tuple[Any, Any]:
    pairs = []
    for step in range(STEPS):
        for rank in ranks:
            x = np.random.default_rng(100 * step + rank).normal(size=(ROWS, 5)).astype("float32")
            pairs.append((x, np.sin(x.sum(axis=1, keepdims=True))))
    return np.concatenate([x for x, _ in pairs]), np.concatenate([y for _, y in pairs])


def all_ranks() -> list[int]:
    return list(range(hvd.size()))


def new_model(seed: int = 1) -> Any:
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [keras.layers.Dense(6, activation="tanh", input_shape=(5,)), keras.layers.Dense(1)]
    )


def fit(model: Any, ranks: list[int], **options: Any) -> Any:
    options = {"epochs": 2, "shuffle": False, "verbose": 0, **options}
    return model.fit(*data(ranks), batch_size=ROWS * len(ranks), **options).history


def assert_same(model: Any, other: Any, tolerance: float = 1e-5) -> None:
    for one, two in zip(model.get_weights(), other.get_weights()):
        np.testing.assert_allclose(one, two, rtol=tolerance, atol=tolerance)


def assert_same_on_all_ranks(model: Any) -> None:
    for value in model.get_weights():
        np.testing.assert_array_equal(hvd.allgather(value[None])[0], value)


def kinds() -> Any:
    """Today's optimizers and the old ones."""
    return (keras.optimizers, keras.optimizers.legacy)


def gradient(rank: int, step: int = 0) -> Any:
    return np.random.default_rng(10 * step + rank).normal(size=(3,)).astype("float32")


def stepping(optimizer: Any, variable: Any) -> Any:
    """A compiled function that takes a step by a gradient."""

    def step(one: Any) -> None:
        optimizer.apply_gradients([(one, variable)])

    return tf.function(step)


def case_fit_does_what_one_process_does_with_all_data() -> None:
    for kind in kinds():
        alone, together = new_model(), new_model()
        alone.compile(kind.Adam(0.01), "mse")
        fit(alone, all_ranks())  # before an optimizer is wrapped, which would have to be used
        optimizer = hvd.DistributedOptimizer(kind.Adam(0.01))
        assert isinstance(optimizer, kind.Adam)
        assert optimizer.from_config(optimizer.get_config()).get_config() == optimizer.get_config()
        together.compile(optimizer, "mse")
        history = fit(
            together, [hvd.rank()],
            callbacks=[
                hvd.callbacks.BroadcastGlobalVariablesCallback(0),
                hvd.callbacks.MetricAverageCallback(),
            ],
        )  # fmt: skip
        assert_same(alone, together)
        losses = hvd.allgather(np.asarray([history["loss"]]))
        np.testing.assert_array_equal(losses[0], losses[1])


def case_a_loop_that_only_applies_is_synchronised() -> None:
    for kind in kinds():
        for op, scale in ((hvd.Average, 1.0 / hvd.size()), (hvd.Sum, 1.0)):
            optimizer = hvd.DistributedOptimizer(kind.SGD(0.5), op=op)
            variable = tf.Variable(tf.zeros(3))
            step = stepping(optimizer, variable)
            for number in range(2):
                step(tf.constant(gradient(hvd.rank(), number)))
            total = sum(gradient(r, n) for r in all_ranks() for n in range(2))
            np.testing.assert_allclose(variable.numpy(), -0.5 * scale * total, rtol=1e-5)


def case_gradients_that_were_computed_are_not_reduced_twice() -> None:
    for kind in kinds():
        optimizer = hvd.DistributedOptimizer(kind.SGD(1.0), op=hvd.Sum)
        variable = tf.Variable(tf.zeros(3))
        target = tf.constant(gradient(hvd.rank()))
        optimizer.minimize(lambda v=variable, t=target: tf.reduce_sum(v * t), [variable])
        total = sum(gradient(rank) for rank in all_ranks())
        np.testing.assert_allclose(variable.numpy(), -total, rtol=1e-5)


def case_several_passes_are_added_up() -> None:
    for kind in kinds():
        for is_average in (False, True):
            optimizer = hvd.DistributedOptimizer(
                kind.SGD(1.0), backward_passes_per_step=2, sparse_as_dense=True,
                average_aggregated_gradients=is_average,
            )  # fmt: skip
            variable = tf.Variable(tf.zeros(3))
            step = stepping(optimizer, variable)
            for number in range(5):
                step(tf.constant(gradient(hvd.rank(), number)))
            total = sum(gradient(r, n) for r in all_ranks() for n in range(4)) / hvd.size()
            total = total / 2 if is_average else total
            np.testing.assert_allclose(variable.numpy(), -total, rtol=1e-5)
            assert optimizer._agg_helper.counter.numpy() == 1
            assert optimizer.iterations.numpy() == 5


def case_an_infinite_gradient_of_one_rank_skips_the_step_of_all() -> None:
    wrap = keras.mixed_precision.LossScaleOptimizer
    for make in (
        lambda: wrap(hvd.DistributedOptimizer(keras.optimizers.SGD(1.0)), initial_scale=8.0),
        lambda: hvd.DistributedOptimizer(wrap(keras.optimizers.SGD(1.0), initial_scale=8.0)),
    ):
        optimizer = make()
        variable = tf.Variable(tf.zeros(3))
        mine = 8.0 * gradient(hvd.rank())
        bad = np.full_like(mine, np.inf) if hvd.rank() == 1 else mine
        step = stepping(optimizer, variable)
        step(tf.constant(bad))
        np.testing.assert_array_equal(variable.numpy(), np.zeros(3))
        assert float(optimizer.loss_scale) == 4.0
        # Scaling is left to the caller here: apply_gradients() only looks for infinite numbers.
        step(tf.constant(gradient(hvd.rank())))
        mean = sum(gradient(rank) for rank in all_ranks()) / hvd.size()
        np.testing.assert_allclose(variable.numpy(), -mean, rtol=1e-5)


def case_sparse_gradients_are_reduced() -> None:
    for as_dense in (False, True):
        for kind in kinds():
            optimizer = hvd.DistributedOptimizer(kind.SGD(1.0), sparse_as_dense=as_dense)
            variable = tf.Variable(tf.zeros((4, 2)))
            slices = tf.IndexedSlices(tf.ones((1, 2)), [hvd.rank()], tf.constant([4, 2]))
            optimizer.apply_gradients([(slices, variable)])
            wanted = np.zeros((4, 2))
            wanted[: hvd.size()] = -1.0 / hvd.size()
            np.testing.assert_allclose(variable.numpy(), wanted)


def case_a_broadcast_comes_after_the_first_step() -> None:
    for kind in kinds():
        keras.utils.set_random_seed(hvd.rank())
        model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(1)])
        model.compile(hvd.DistributedOptimizer(kind.SGD(0.1, momentum=0.9)), "mse")
        fit(model, [hvd.rank()], callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
        assert_same_on_all_ranks(model)


def case_local_layers_are_left_to_their_rank() -> None:
    model = new_model()
    optimizer = hvd.PartialDistributedOptimizer(
        keras.optimizers.SGD(0.1), local_layers=model.layers[1]
    )
    model.compile(optimizer, "mse")
    fit(model, [hvd.rank()])
    assert_same_on_all_ranks(model.layers[0])
    kernels = hvd.allgather(model.layers[1].get_weights()[0][None])
    assert np.abs(kernels[0] - kernels[1]).max() > 1e-4


def case_the_learning_rate_follows_its_schedule() -> None:
    for kind in kinds():
        model = new_model()
        model.compile(hvd.DistributedOptimizer(kind.SGD(0.1, momentum=0.9)), "mse")
        history = fit(
            model, [hvd.rank()], epochs=3,
            callbacks=[
                hvd.callbacks.LearningRateWarmupCallback(0.4, warmup_epochs=1),
                hvd.callbacks.LearningRateScheduleCallback(0.4, 0.5, start_epoch=1),
            ],
        )  # fmt: skip
        np.testing.assert_allclose(history["lr"], [0.4, 0.4, 0.2], rtol=1e-5)
        momentum = model.optimizer.momentum
        np.testing.assert_allclose(getattr(momentum, "numpy", lambda m=momentum: m)(), 0.9)


def case_models_are_saved_for_anybody_and_loaded_distributed() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model = new_model()
        model.compile(hvd.DistributedOptimizer(keras.optimizers.Adam(0.01)), "mse")
        fit(model, [hvd.rank()], epochs=1)
        model.save(path)
        assert not hasattr(keras.models.load_model(path).optimizer, "register_local_var")
        loaded = hvd.load_model(path)
        for one in (model, loaded):
            fit(one, [hvd.rank()], epochs=1)
        assert_same(model, loaded, 0)
        assert_same_on_all_ranks(loaded)


def case_an_elastic_state_is_kept_and_shared() -> None:
    model = new_model(seed=1 + hvd.rank())
    optimizer = keras.optimizers.legacy.Adam(0.01)
    state = hvd.elastic.KerasState(model, optimizer, batch=hvd.rank())
    state.sync()
    assert_same(model, new_model(seed=1), 0)
    assert state.batch == 0
    model.set_weights(new_model(seed=5).get_weights())
    state.batch = 9
    state.restore()
    assert state.batch == 0
    assert_same(model, new_model(seed=1), 0)


def case_a_model_that_goes_round_the_optimizer_fails_in_its_first_epoch() -> None:
    class Round(keras.Sequential):
        """Its steps leave the optimizer alone."""

        def train_step(self, data: Any) -> Any:
            return {"loss": tf.zeros(())}

    epochs: list[int] = []

    class Count(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            epochs.append(epoch)

    for kind in kinds():
        model = Round([keras.layers.Dense(1, input_shape=(5,))])
        model.compile(hvd.DistributedOptimizer(kind.SGD(0.1)), "mse")
        epochs.clear()
        try:
            fit(model, [hvd.rank()], callbacks=[Count()])
        except RuntimeError as error:
            assert "no gradient came to it" in str(error), error
        else:
            raise AssertionError("nothing was said")
        assert epochs == [0]


def case_a_wrapped_optimizer_that_is_not_the_one_in_use_fails_the_first_epoch() -> None:
    from rueda.keras import reducer

    for kind in kinds():
        reducer.Reducer.any_has_run = False
        plain = kind.SGD(0.1)
        hvd.DistributedOptimizer(plain)
        model = new_model()
        model.compile(plain, "mse")
        try:
            fit(model, [hvd.rank()])
        except RuntimeError as error:
            assert "its SGD is not one that DistributedOptimizer() returned" in str(error), error
        else:
            raise AssertionError("nothing was said")


def said_about(kind: Any, *callbacks: Any) -> list[str]:
    """What fit() warns of with models that begin differently."""
    model = new_model(seed=hvd.rank())
    model.compile(hvd.DistributedOptimizer(kind.SGD(0.1)), "mse")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fit(model, [hvd.rank()], callbacks=list(callbacks))
    return [str(one.message) for one in seen if "the parameter " in str(one.message)]


def case_a_model_that_was_never_broadcast_is_reported() -> None:
    for kind in kinds():
        said = said_about(kind)
        assert len(said) == (hvd.rank() == 0), said
        assert all("BroadcastGlobalVariablesCallback" in words for words in said), said
        assert said_about(kind, hvd.callbacks.BroadcastGlobalVariablesCallback(0)) == []


def case_the_old_names_are_the_same() -> None:
    import horovod.keras
    import horovod.tensorflow.keras
    import rueda.keras

    assert horovod.tensorflow.keras is hvd
    assert horovod.keras is rueda.keras
    assert hvd.DistributedOptimizer is rueda.keras.DistributedOptimizer
    try:
        hvd.DistributedOptimizer("adam")
    except TypeError as error:
        assert "tf_keras" in str(error)
    else:
        raise AssertionError("a string was taken for an optimizer")


test_case = cases_of(
    __name__, needs=("tensorflow", "tf_keras"), limit_s=400, TF_USE_LEGACY_KERAS="1"
)

if __name__ == "__main__":
    run_cases(globals(), "rueda.tensorflow.keras")
