# SPDX-License-Identifier: Apache-2.0
"""Cases for Keras 3, the same on every back end: two ranks do what one process does.

test_keras_torch.py, test_keras_jax.py and test_keras_tensorflow.py run them.
"""

from __future__ import annotations

import copy
import functools
import itertools
import os
import pickle
import shutil
import tempfile
import warnings
from typing import Any

SIZE = 2
ROWS = 4  # of a batch of a rank
STEPS = 3

if "KERAS_BACKEND" in os.environ:
    if os.environ["KERAS_BACKEND"] != "tensorflow":
        import sys

        # Keras imports it where it is installed, which takes longer than all of the cases.
        sys.modules["tensorflow"] = None  # type: ignore[assignment]
    import keras
    import numpy as np
    import rueda.keras as hvd
    from rueda.keras.optimizer import reducer_of

    keras.utils.disable_interactive_logging()


# ---- What is trained --------------------------------------------------------


def batch(rank: int, step: int) -> tuple[Any, Any]:
    """What a rank has in a step."""
    generator = np.random.default_rng(100 * step + rank)
    x = generator.normal(size=(ROWS, 5)).astype("float32")
    return x, np.sin(x.sum(axis=1, keepdims=True)).astype("float32")


def data(ranks: list[int], steps: int = STEPS) -> tuple[Any, Any]:
    """Steps one after another, each with the rows of these ranks."""
    pairs = [batch(rank, step) for step in range(steps) for rank in ranks]
    return np.concatenate([x for x, _ in pairs]), np.concatenate([y for _, y in pairs])


def all_ranks() -> list[int]:
    return list(range(hvd.size()))


def new_model(seed: int = 1, dtype: Any = None) -> Any:
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [
            keras.Input((5,)),
            keras.layers.Dense(6, activation="tanh", dtype=dtype),
            keras.layers.Dense(1, dtype=dtype),
        ]
    )


def fit(model: Any, ranks: list[int], steps: int = STEPS, **options: Any) -> Any:
    x, y = data(ranks, steps)
    options = {"epochs": 2, "shuffle": False, "verbose": 0, **options}
    return model.fit(x, y, batch_size=ROWS * len(ranks), **options).history


@functools.cache
def alone_by_sgd(epochs: int = 2) -> Any:
    return train_alone(sgd(), epochs=epochs)


def train_alone(optimizer: Any, **options: Any) -> Any:
    """What one process has that gets the rows of all ranks."""
    model = new_model()
    model.compile(optimizer, "mse")
    fit(model, all_ranks(), **options)
    return model


def assert_same(model: Any, other: Any, tolerance: float = 1e-5) -> None:
    for one, two in zip(model.get_weights(), other.get_weights()):
        np.testing.assert_allclose(one, two, rtol=tolerance, atol=tolerance)


def assert_same_on_all_ranks(values: Any) -> None:
    for value in values:
        array = np.asarray(value)[None]
        np.testing.assert_array_equal(hvd.allgather(array)[0], array[0])


def raises(kind: type[BaseException], call: Any, words: str = "") -> None:
    try:
        call()
    except kind as error:
        assert words in str(error), str(error)
    else:
        raise AssertionError(f"no {kind.__name__}")


def mean_gradient(step: int = 0) -> Any:
    return sum(gradient(rank, step) for rank in all_ranks()) / hvd.size()


def gradient(rank: int, step: int = 0, shape: tuple[int, ...] = (3, 2)) -> Any:
    generator = np.random.default_rng(1000 + 10 * step + rank)
    return generator.normal(size=shape).astype("float32")


def applied(optimizer: Any, gradients: list[Any], count: int = 2) -> list[Any]:
    """Some variables after a step by each of these gradients."""
    variables = [keras.Variable(np.full((3, 2), 0.5, "float32")) for _ in range(count)]
    optimizer.build(variables)
    for one in gradients:
        step(optimizer, [keras.ops.convert_to_tensor(one * (i + 1)) for i in range(count)],
             variables)  # fmt: skip
    return [keras.ops.convert_to_numpy(variable) for variable in variables]


def step(optimizer: Any, gradients: list[Any], variables: list[Any]) -> None:
    """One step, in the only way that Keras has for scaled losses on JAX."""
    if keras.backend.backend() != "jax" or not hasattr(optimizer, "inner_optimizer"):
        optimizer.apply(gradients, variables)
        return
    mine = [*variables, *optimizer.variables]
    values = optimizer.stateless_apply(
        [v.value for v in optimizer.variables], gradients, [v.value for v in variables]
    )
    for variable, value in zip(mine, [*values[0], *values[1]]):
        variable.assign(value)


def check_like_mean(make: Any, scale: float = 1.0, tolerance: float = 1e-6, **options: Any) -> None:
    """A step by the mean gradient of all ranks, and a distributed one, end in the same."""
    wanted = applied(make(), [scale * mean_gradient(s) for s in range(2)])
    found = applied(
        hvd.DistributedOptimizer(make(), **options), [gradient(hvd.rank(), s) for s in range(2)]
    )
    for one, two in zip(wanted, found):
        np.testing.assert_allclose(one, two, rtol=tolerance, atol=tolerance)


def sgd() -> Any:
    return keras.optimizers.SGD(0.1, momentum=0.9)


# ---- The same as one process ------------------------------------------------


def case_fit_does_what_one_process_does_with_all_data() -> None:
    alone = train_alone(keras.optimizers.AdamW(0.01, weight_decay=0.1, global_clipnorm=0.3))
    model = new_model()
    optimizer = hvd.DistributedOptimizer(
        keras.optimizers.AdamW(0.01, weight_decay=0.1, global_clipnorm=0.3)
    )
    model.compile(optimizer, "mse")
    history = fit(model, [hvd.rank()], callbacks=[hvd.callbacks.MetricAverageCallback()])
    assert_same(alone, model)
    assert_same_on_all_ranks(history["loss"])
    # The optimizer's state has gone on, too, and evaluation works.
    assert int(keras.ops.convert_to_numpy(model.optimizer.iterations)) == 2 * STEPS
    assert model.evaluate(*data([0]), verbose=0) >= 0


def case_train_on_batch_is_synchronised() -> None:
    alone, together = new_model(), new_model()
    alone.compile(sgd(), "mse")
    together.compile(hvd.DistributedOptimizer(sgd()), "mse")
    for step in range(STEPS):
        pairs = [batch(rank, step) for rank in all_ranks()]
        alone.train_on_batch(*(np.concatenate(part) for part in zip(*pairs)))
        together.train_on_batch(*batch(hvd.rank(), step))
    assert_same(alone, together)


def case_a_loop_of_ones_own_is_synchronised() -> None:
    alone, together = new_model(), new_model()
    train_by_hand(alone, sgd(), all_ranks())
    train_by_hand(together, hvd.DistributedOptimizer(sgd()), [hvd.rank()])
    assert_same(alone, together)


def train_by_hand(model: Any, optimizer: Any, ranks: list[int]) -> None:
    optimizer.build(model.trainable_variables)
    loop = {"torch": loop_of_torch, "jax": loop_of_jax, "tensorflow": loop_of_tensorflow}
    loop[keras.backend.backend()](
        model, optimizer, [data_of_step(ranks, step) for step in range(STEPS)]
    )


def data_of_step(ranks: list[int], step: int) -> Any:
    pairs = [batch(rank, step) for rank in ranks]
    return tuple(np.concatenate(part) for part in zip(*pairs))


def loop_of_torch(model: Any, optimizer: Any, batches: Any) -> None:
    for x, y in batches:
        model.zero_grad()
        loss = keras.ops.mean(keras.losses.mean_squared_error(y, model(x)))
        loss.backward()
        optimizer.apply([v.value.grad for v in model.trainable_variables])


def loop_of_jax(model: Any, optimizer: Any, batches: Any) -> None:
    import jax

    def loss_of(trainable: Any, fixed: Any, x: Any, y: Any) -> Any:
        predicted, _ = model.stateless_call(trainable, fixed, x)
        return keras.ops.mean(keras.losses.mean_squared_error(y, predicted))

    @jax.jit
    def step(trainable: Any, fixed: Any, state: Any, x: Any, y: Any) -> Any:
        gradients = jax.grad(loss_of)(trainable, fixed, x, y)
        return optimizer.stateless_apply(state, gradients, trainable)

    trainable = [v.value for v in model.trainable_variables]
    fixed = [v.value for v in model.non_trainable_variables]
    state = [v.value for v in optimizer.variables]
    for x, y in batches:
        trainable, state = step(trainable, fixed, state, x, y)
    for variable, value in zip(model.trainable_variables, trainable):
        variable.assign(value)


def loop_of_tensorflow(model: Any, optimizer: Any, batches: Any) -> None:
    import tensorflow as tf

    @tf.function
    def step(x: Any, y: Any) -> None:
        with tf.GradientTape() as tape:
            loss = keras.ops.mean(keras.losses.mean_squared_error(y, model(x)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    for x, y in batches:
        step(tf.constant(x), tf.constant(y))


def case_every_optimizer_works() -> None:
    """All that this Keras has; newer ones have Muon and more."""
    bases = (keras.optimizers.Optimizer, keras.optimizers.LossScaleOptimizer)
    kinds = {
        name
        for name, kind in vars(keras.optimizers).items()
        if isinstance(kind, type) and issubclass(kind, bases[0]) and kind not in bases
    }
    assert {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl",
            "Lion", "Adafactor"} <= kinds  # fmt: skip
    if keras.backend.backend() == "jax":
        # It compiles each operation of each of them.
        kinds &= {"SGD", "Adam", "AdamW", "RMSprop", "Lion", "Muon"}
    for name in sorted(kinds - {"MultiOptimizer"}):
        kind = getattr(keras.optimizers, name)
        check_like_mean(lambda kind=kind: kind(0.05), tolerance=1e-5)


def case_an_optimizer_of_several_works() -> None:
    if not hasattr(keras.optimizers, "MultiOptimizer"):
        return

    def make() -> Any:
        turns = itertools.cycle([sgd(), keras.optimizers.Adam(0.05)])
        return keras.optimizers.MultiOptimizer(lambda variable: next(turns))

    check_like_mean(make, tolerance=1e-5)


def case_options_change_nothing_but_the_way() -> None:
    check_like_mean(sgd, op=hvd.Sum, scale=float(hvd.size()))
    check_like_mean(sgd, gradient_predivide_factor=2.0)
    check_like_mean(sgd, groups=1)
    check_like_mean(sgd, groups=5)
    check_like_mean(sgd, compression=hvd.Compression.fp16, tolerance=5e-3)
    check_like_mean(sgd, compression=hvd.Compression.bf16, tolerance=4e-2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        check_like_mean(sgd, num_groups=2)
    assert any(one.category is DeprecationWarning for one in seen)


def case_groups_can_be_lists_of_variables() -> None:
    model = new_model()
    variables = model.trainable_variables
    optimizer = hvd.DistributedOptimizer(sgd(), groups=[[variables[0], variables[3]]])
    alone = alone_by_sgd(epochs=1)
    model.compile(optimizer, "mse")
    fit(model, [hvd.rank()], epochs=1)
    assert_same(alone, model)


def case_options_that_cannot_be_are_refused() -> None:
    wrong = (
        {"op": hvd.Min},
        {"gradient_predivide_factor": 2.0, "op": hvd.Sum},
        {"groups": 0},
        {"groups": [1]},
        {"backward_passes_per_step": 0},
    )
    for options in wrong:
        raises(ValueError, lambda options=options: hvd.DistributedOptimizer(sgd(), **options))
    raises(TypeError, lambda: hvd.DistributedOptimizer("adam"), "takes an optimizer of Keras")
    optimizer = hvd.DistributedOptimizer(sgd())
    raises(ValueError, lambda: hvd.DistributedOptimizer(optimizer), "distributed already")
    built = sgd()
    built.build([keras.Variable([1.0])])
    raises(ValueError, lambda: hvd.DistributedOptimizer(built, backward_passes_per_step=2))


# ---- Several passes ---------------------------------------------------------


def case_several_passes_are_added_up_and_reduced_once() -> None:
    for is_average in (False, True):
        scale = 1.0 if is_average else 2.0
        steps = [scale * (mean_gradient(s) + mean_gradient(s + 1)) / 2 for s in (0, 2)]
        wanted = applied(sgd(), steps)
        optimizer = hvd.DistributedOptimizer(
            sgd(), backward_passes_per_step=2, average_aggregated_gradients=is_average
        )
        found = applied(optimizer, [gradient(hvd.rank(), s) for s in range(4)])
        for one, two in zip(wanted, found):
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)
        assert_same_on_all_ranks(found)


def case_passes_that_keras_counts_are_averaged_in_fit() -> None:
    def make() -> Any:
        return keras.optimizers.SGD(0.1, gradient_accumulation_steps=3)

    alone = train_alone(make())
    model = new_model()
    model.compile(hvd.DistributedOptimizer(make()), "mse")
    fit(model, [hvd.rank()])
    assert_same(alone, model)
    assert_same_on_all_ranks(model.get_weights())


# ---- Mixed precision --------------------------------------------------------


def case_an_infinite_gradient_of_one_rank_skips_the_step_of_all() -> None:
    for make in (
        lambda: hvd.DistributedOptimizer(keras.optimizers.LossScaleOptimizer(sgd(), 8.0)),
        lambda: keras.optimizers.LossScaleOptimizer(hvd.DistributedOptimizer(sgd()), 8.0),
    ):
        optimizer = make()
        assert isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        mine = 8.0 * gradient(hvd.rank())
        bad = np.full_like(mine, np.inf) if hvd.rank() == 1 else mine
        found = applied(optimizer, [bad])
        np.testing.assert_array_equal(found[0], np.full((3, 2), 0.5))
        assert float(keras.ops.convert_to_numpy(optimizer.dynamic_scale)) == 4.0
        wanted = applied(sgd(), [mean_gradient()])
        optimizer = make()
        found = applied(optimizer, [mine])
        np.testing.assert_allclose(wanted[0], found[0], rtol=1e-5, atol=1e-6)


def case_mixed_precision_that_keras_sets_up_is_synchronised() -> None:
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = new_model(dtype="mixed_float16")
        model.compile(hvd.DistributedOptimizer(sgd()), "mse")
        assert type(model.optimizer).__name__ == "LossScaleOptimizer"
        fit(model, [hvd.rank()], callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
    finally:
        keras.config.set_dtype_policy("float32")
    assert_same_on_all_ranks(model.get_weights())
    moved = [np.abs(one - two).max() for one, two in zip(model.get_weights(),
                                                         new_model().get_weights())]  # fmt: skip
    assert max(moved) > 1e-4, moved


# ---- Sets and local variables -----------------------------------------------


def case_a_rank_outside_the_process_set_steps_alone() -> None:
    one = hvd.add_process_set([0])
    optimizer = hvd.DistributedOptimizer(sgd(), process_set=one)
    assert optimizer.process_set is one
    found = applied(optimizer, [gradient(hvd.rank())])
    np.testing.assert_allclose(found[0], applied(sgd(), [gradient(hvd.rank())])[0], rtol=1e-6)
    hvd.remove_process_set(one)


def case_local_variables_are_left_to_their_rank() -> None:
    for scales, share in ((True, hvd.size()), (False, 1)):
        variables = [keras.Variable(np.zeros((3, 2), "float32")) for _ in range(2)]
        optimizer = hvd.DistributedOptimizer(
            keras.optimizers.SGD(1.0), scale_local_gradients=scales
        )
        optimizer.register_local_var(variables[1])
        mine = gradient(hvd.rank())
        optimizer.apply([keras.ops.convert_to_tensor(mine)] * 2, variables)
        shared, local = (keras.ops.convert_to_numpy(v) for v in variables)
        np.testing.assert_allclose(shared, -mean_gradient(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(local, -mine / share, rtol=1e-5, atol=1e-6)


def case_local_layers_are_left_to_their_rank() -> None:
    model = new_model()
    optimizer = hvd.PartialDistributedOptimizer(sgd(), local_layers=model.layers[1])
    model.compile(optimizer, "mse")
    fit(model, [hvd.rank()], callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
    assert_same_on_all_ranks(model.layers[0].get_weights())
    kernels = hvd.allgather(model.layers[1].get_weights()[0][None])
    assert np.abs(kernels[0] - kernels[1]).max() > 1e-4
    raises(ValueError, lambda: hvd.PartialDistributedOptimizer(sgd(), local_layers="dense"))


# ---- Saved and loaded -------------------------------------------------------


if "KERAS_BACKEND" in os.environ:

    @keras.saving.register_keras_serializable("mine")
    class Own(keras.optimizers.SGD):
        """An optimizer of a user's."""


def in_folder(use: Any) -> None:
    """Call this with a folder of this rank's own."""
    folder = tempfile.mkdtemp()
    try:
        use(folder)
    finally:
        shutil.rmtree(folder)


def case_a_distributed_optimizer_passes_for_its_class() -> None:
    own = keras.optimizers.Adam(0.25, beta_1=0.8)
    optimizer = hvd.DistributedOptimizer(own, op=hvd.Sum)
    assert isinstance(optimizer, keras.optimizers.Adam)
    assert type(optimizer).__name__ == "Adam"
    assert optimizer.get_config() == own.get_config()
    again = type(optimizer).from_config(optimizer.get_config())
    assert again.get_config() == own.get_config()
    wanted = applied(keras.optimizers.Adam(0.25, beta_1=0.8), [hvd.size() * mean_gradient()])
    np.testing.assert_allclose(applied(again, [gradient(hvd.rank())])[0], wanted[0], rtol=1e-5)


def case_models_are_saved_for_anybody_and_loaded_distributed() -> None:
    def check(folder: str) -> None:
        for kind in (keras.optimizers.Adam, Own):
            path = os.path.join(folder, f"{kind.__name__}.keras")
            model = new_model()
            model.compile(hvd.DistributedOptimizer(kind(0.01)), "mse")
            fit(model, [hvd.rank()], epochs=1)
            model.save(path)
            plain = keras.models.load_model(path)
            assert isinstance(plain.optimizer, kind)
            assert not hasattr(plain.optimizer, "register_local_var")
            loaded = hvd.load_model(path)
            assert isinstance(loaded.optimizer, kind)
            for one, two in zip(model.optimizer.variables, loaded.optimizer.variables):
                np.testing.assert_array_equal(
                    keras.ops.convert_to_numpy(one), keras.ops.convert_to_numpy(two)
                )
            for one in (model, loaded):
                fit(one, [hvd.rank()], epochs=1)
            assert_same(model, loaded, 0)
            assert_same_on_all_ranks(loaded.get_weights())

    in_folder(check)


def case_copies_and_pickles_of_the_optimizer_are_distributed() -> None:
    scaled = keras.optimizers.LossScaleOptimizer
    made = [
        copy.deepcopy(hvd.DistributedOptimizer(sgd())),
        copy.copy(hvd.DistributedOptimizer(sgd())),
        pickle.loads(pickle.dumps(hvd.DistributedOptimizer(sgd()))),
        copy.deepcopy(hvd.DistributedOptimizer(scaled(sgd()))),
        pickle.loads(pickle.dumps(scaled(hvd.DistributedOptimizer(sgd())))),
    ]
    for optimizer in made:
        model = new_model()
        model.compile(optimizer, "mse")
        fit(model, [hvd.rank()], epochs=1)
        assert_same_on_all_ranks(model.get_weights())
    local = keras.Variable([1.0])
    optimizer = hvd.DistributedOptimizer(sgd(), op=hvd.Sum)
    optimizer.register_local_var(local)
    reducer = reducer_of(copy.deepcopy(optimizer))
    assert reducer.is_local(local)
    assert reducer.options.op == hvd.Sum


# ---- Callbacks --------------------------------------------------------------


def case_model_and_optimizer_are_broadcast_before_the_first_step() -> None:
    alone = alone_by_sgd()
    model = new_model(seed=1 + hvd.rank())
    model.compile(hvd.DistributedOptimizer(sgd()), "mse")
    callback = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
    fit(model, [hvd.rank()], callbacks=[callback])
    assert callback.broadcast_done
    assert_same(alone, model)


def case_random_generators_stay_different() -> None:
    keras.utils.set_random_seed(1 + hvd.rank())
    layers = [keras.Input((5,)), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile(hvd.DistributedOptimizer(sgd()), "mse")
    fit(model, [hvd.rank()], epochs=1,
        callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])  # fmt: skip
    states = [v for v in model.variables if v.name.startswith("seed_generator_state")]
    states = hvd.allgather(keras.ops.convert_to_numpy(states[0])[None])
    assert (states[0] != states[1]).any()
    assert_same_on_all_ranks(model.get_weights()[:2])


def case_a_model_without_weights_is_broadcast_after_the_first_step() -> None:
    keras.utils.set_random_seed(hvd.rank())
    model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(1)])
    model.compile(hvd.DistributedOptimizer(sgd()), "mse")
    fit(model, [hvd.rank()], callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
    assert_same_on_all_ranks(model.get_weights())


def case_local_variables_are_not_broadcast() -> None:
    model = new_model(seed=1 + hvd.rank())
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.0)), "mse")
    local = model.layers[1].kernel
    callback = hvd.callbacks.BroadcastGlobalVariablesCallback(0, local_variables=local)
    fit(model, [hvd.rank()], epochs=1, callbacks=[callback])
    assert_same_on_all_ranks(model.layers[0].get_weights())
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(local), new_model(seed=1 + hvd.rank()).get_weights()[2]
    )


def case_metrics_are_averaged_for_later_callbacks() -> None:
    seen: list[Any] = []

    class Look(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen.append(dict(logs))

    logs = {"loss": float(hvd.rank()), "accuracy": np.float32(0.5 + hvd.rank()), "name": "x"}
    callback = hvd.callbacks.MetricAverageCallback()
    callback.set_model(new_model())
    callback.on_epoch_end(0, logs)
    assert logs == {"loss": 0.5, "accuracy": 1.0, "name": "x"}
    model = new_model()
    model.compile(hvd.DistributedOptimizer(sgd()), "mse")
    fit(model, [hvd.rank()], epochs=1, callbacks=[hvd.callbacks.MetricAverageCallback(), Look()],
        validation_data=data([hvd.rank()], 1))  # fmt: skip
    assert set(seen[0]) == {"loss", "val_loss"}
    assert_same_on_all_ranks(seen[0].values())


def case_the_learning_rate_follows_its_schedule() -> None:
    rates: list[float] = []

    class Look(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            rates.append(float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)))

    model = new_model()
    model.compile(hvd.DistributedOptimizer(sgd()), "mse")
    history = fit(
        model, [hvd.rank()], epochs=3,
        callbacks=[
            hvd.callbacks.LearningRateWarmupCallback(0.4, warmup_epochs=1, verbose=1),
            hvd.callbacks.LearningRateScheduleCallback(0.4, 0.5, start_epoch=1),
            Look(),
        ],
    )  # fmt: skip
    wanted = [0.2 * (1 + (i + 1) / STEPS) for i in range(STEPS)] + [0.4] * STEPS + [0.2] * STEPS
    np.testing.assert_allclose(rates, wanted, rtol=1e-5)
    np.testing.assert_allclose(history["lr"], [0.4, 0.4, 0.2], rtol=1e-5)
    assert model.optimizer.momentum == 0.9
    raises(ValueError, lambda: hvd.callbacks.LearningRateScheduleCallback(None, 1.0))


def case_the_new_learning_rate_is_used_by_the_step() -> None:
    model = new_model()
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), "mse")
    zero = hvd.callbacks.LearningRateScheduleCallback(
        0.1, lambda epoch: 0.0 if epoch > 0 else 1.0, staircase=False
    )
    after_first = train_alone(keras.optimizers.SGD(0.1), steps=1, epochs=1)
    fit(model, [hvd.rank()], epochs=1, callbacks=[zero])
    assert_same(after_first, model)


def case_the_best_model_is_kept() -> None:
    def check(folder: str) -> None:
        callback = hvd.callbacks.BestModelCheckpoint(monitor="loss")
        model = new_model()
        model.compile(hvd.DistributedOptimizer(sgd()), "mse")
        raises(ValueError, lambda: fit(model, [hvd.rank()], callbacks=[callback]), "filepath")
        callback.filepath = os.path.join(folder, "best.keras")
        fit(model, [hvd.rank()], callbacks=[callback])
        assert os.path.exists(callback.filepath)

    in_folder(check)


def case_an_elastic_state_is_kept_and_shared() -> None:
    model = new_model(seed=1 + hvd.rank())
    model.compile(hvd.DistributedOptimizer(sgd()), "mse")
    state = hvd.elastic.KerasState(model, batch=0, epoch=hvd.rank())
    state.sync()
    assert_same(model, new_model(seed=1), 0)
    assert state.epoch == 0
    before = model.get_weights()
    callbacks = [
        hvd.elastic.UpdateBatchStateCallback(state),
        hvd.elastic.UpdateEpochStateCallback(state),
        hvd.elastic.CommitStateCallback(state, batches_per_commit=2),
    ]
    fit(model, [hvd.rank()], callbacks=callbacks)
    assert (state.batch, state.epoch) == (0, 2)
    after = model.get_weights()
    model.set_weights(before)
    state.epoch = 7
    state.restore()
    assert state.epoch == 2
    for one, two in zip(after, model.get_weights()):
        np.testing.assert_array_equal(one, two)
    unbuilt = keras.Sequential([keras.layers.Dense(1)])
    raises(ValueError, lambda: hvd.elastic.KerasState(unbuilt), "no weights")


# ---- Values -----------------------------------------------------------------


def case_values_are_reduced_gathered_and_broadcast() -> None:
    rank, size = hvd.rank(), hvd.size()
    assert float(hvd.allreduce(float(rank))) == (size - 1) / 2
    assert int(hvd.allreduce(rank, average=False)) == size * (size - 1) // 2
    tensor = keras.ops.convert_to_tensor(np.full((2, 3), rank, "float32"))
    found = hvd.allreduce(tensor, op=hvd.Max, compression=hvd.Compression.fp16)
    assert keras.ops.is_tensor(found)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(found), np.full((2, 3), size - 1))
    gathered = hvd.allgather(np.full((rank + 1, 2), rank))
    assert gathered.shape == (size * (size + 1) // 2, 2)
    np.testing.assert_array_equal(hvd.broadcast([rank, 5], root_rank=1), [1, 5])
    rows = hvd.reducescatter(np.arange(6.0).reshape(3, 2), op=hvd.Sum)
    assert rows.shape == (2 if rank == 0 else 1, 2)
    variable = keras.Variable(np.full(3, rank, "float32"))
    assert hvd.broadcast(np.uint32(7 + rank), root_rank=1) == 8
    hvd.broadcast_variables([variable], root_rank=1)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(variable), np.ones(3))
    raises(RuntimeError, lambda: hvd.broadcast_global_variables(0), "broadcast_variables")
    assert hvd.is_master() == (rank == 0)
    assert hvd.broadcast_object({"rank": rank}, 1) == {"rank": 1}


def case_the_old_name_is_the_same_module() -> None:
    import horovod.keras
    import horovod.keras.callbacks

    assert horovod.keras is hvd
    assert horovod.keras.callbacks is hvd.callbacks
