# SPDX-License-Identifier: Apache-2.0
"""Cases for Keras 3 in which something is wrong: someone has to be told.

The files that run those of keras_cases.py run these as well.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from typing import Any

from keras_cases import fit, new_model, raises, sgd

if "KERAS_BACKEND" in os.environ:
    import keras
    import rueda.keras as hvd


def case_a_model_that_goes_round_the_optimizer_fails_in_its_first_epoch() -> None:
    class Round(keras.Sequential):
        """Its steps leave the optimizer alone."""

        def train_step(self, *args: Any) -> Any:
            if keras.backend.backend() == "jax":
                return {"loss": keras.ops.zeros(())}, args[0]
            return {"loss": keras.ops.zeros(())}

    epochs: list[int] = []

    class Count(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            epochs.append(epoch)

    for more in ([], [hvd.callbacks.MetricAverageCallback()]):
        model = Round([keras.Input((5,)), keras.layers.Dense(1)])
        model.compile(hvd.DistributedOptimizer(sgd()), "mse")
        epochs.clear()
        raises(RuntimeError, lambda model=model, more=more: fit(
            model, [hvd.rank()], callbacks=[Count(), *more]
        ), "no gradient came to it")  # fmt: skip
        assert epochs == [0]


class Epochs(keras.callbacks.Callback if "KERAS_BACKEND" in os.environ else object):
    """How many were begun."""

    count = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.count += 1


def forget() -> None:
    """As in a process that has wrapped and used nothing yet."""
    from rueda.keras import optimizer, reducer

    reducer.Reducer.any_has_run = False
    optimizer._sets_of_wrapped.clear()
    optimizer._warn_once.cache_clear()


def said_of_plain(model: Any, *callbacks: Any) -> list[str]:
    """What fit() warns of where a model has no distributed optimizer."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fit(model, [hvd.rank()], epochs=2, callbacks=list(callbacks))
    return [str(one.message) for one in seen if "trains on each rank alone" in str(one.message)]


def compiled(optimizer: Any) -> Any:
    model = new_model()
    model.compile(optimizer, "mse")
    return model


def case_a_wrapped_optimizer_that_is_not_the_one_in_use_fails_the_first_epoch() -> None:
    for callbacks in ([], [hvd.callbacks.MetricAverageCallback()]):
        forget()
        plain = sgd()
        hvd.DistributedOptimizer(plain)
        epochs = Epochs()
        model = compiled(plain)
        raises(RuntimeError, lambda model=model, more=[epochs, *callbacks]: fit(
            model, [hvd.rank()], epochs=3, callbacks=more
        ), "its SGD is not one that DistributedOptimizer() returned")  # fmt: skip
        assert epochs.count == 1


def case_a_model_loaded_by_keras_is_not_taken_for_a_distributed_one() -> None:
    forget()
    path = os.path.join(tempfile.mkdtemp(), "model.keras")
    compiled(hvd.DistributedOptimizer(sgd())).save(path)
    model = keras.models.load_model(path)
    raises(RuntimeError, lambda: fit(model, [hvd.rank()], epochs=2), "hvd.load_model() makes")
    fit(hvd.load_model(path), [hvd.rank()], epochs=1)
    shutil.rmtree(os.path.dirname(path))


def case_a_model_that_each_rank_trains_for_itself_is_no_failure() -> None:
    forget()
    assert len(said_of_plain(compiled(sgd()), hvd.callbacks.MetricAverageCallback())) == 1
    forget()
    optimizer = hvd.DistributedOptimizer(sgd())
    os.environ["RUEDA_CHECK"] = "off"
    try:
        hvd.shutdown()
        hvd.init()
        assert len(said_of_plain(compiled(sgd()))) == 1
    finally:
        del os.environ["RUEDA_CHECK"]
        hvd.shutdown()
        hvd.init()
    fit(compiled(optimizer), [hvd.rank()], epochs=1)
    assert said_of_plain(compiled(sgd())) == []
    forget()
    hvd.DistributedOptimizer(sgd(), process_set=hvd.add_process_set([0]))
    if hvd.rank() == 1:  # which is in no set that has an optimizer
        assert len(said_of_plain(compiled(sgd()))) == 1


def case_a_model_with_nothing_to_train_is_no_failure() -> None:
    model = new_model()
    model.trainable = False
    model.compile(hvd.DistributedOptimizer(sgd()), "mse")
    fit(model, [hvd.rank()], epochs=1)


def case_an_exception_of_fit_is_not_hidden() -> None:
    class Stop(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            raise KeyError("the cause")

    model = new_model()
    model.compile(hvd.DistributedOptimizer(sgd()), "mse")
    raises(KeyError, lambda: fit(model, [hvd.rank()], callbacks=[Stop()]), "the cause")


def case_steps_of_tensorflow_are_not_compiled_by_xla() -> None:
    if keras.backend.backend() != "tensorflow":
        return
    import tensorflow as tf

    class Gpu:
        device_type = "GPU"

    own, tf.config.list_physical_devices = tf.config.list_physical_devices, lambda: [Gpu()]
    try:
        models = [new_model(), new_model()]
        for model, kind in zip(models, (lambda one: one, hvd.DistributedOptimizer)):
            model.compile(kind(sgd()), "mse")
        assert [model.jit_compile for model in models] == [True, False]
    finally:
        tf.config.list_physical_devices = own
    model = new_model()
    model.compile(hvd.DistributedOptimizer(sgd()), "mse", jit_compile=True)
    raises(ValueError, lambda: fit(model, [hvd.rank()], epochs=1), "jit_compile=True")


def said_in_fit(model: Any, **options: Any) -> list[str]:
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), "mse")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fit(model, [hvd.rank()], **options)
    return [str(one.message) for one in seen if "the parameter " in str(one.message)]


def case_a_model_that_was_never_broadcast_is_reported() -> None:
    said = said_in_fit(new_model(seed=hvd.rank()))
    if hvd.rank() == 0:
        assert len(said) == 1, said
        assert "/kernel" in said[0], said
        assert "BroadcastGlobalVariablesCallback" in said[0], said
    else:
        assert said == [], said
    broadcast = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
    assert said_in_fit(new_model(seed=hvd.rank()), callbacks=[broadcast]) == []


class Spoil(keras.callbacks.Callback if "KERAS_BACKEND" in os.environ else object):
    """Changes the model of rank 1 after some steps."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch == 1 and hvd.rank() == 1:
            variable = self.model.trainable_variables[0]
            variable.assign(variable + 1.0)


def case_later_steps_are_compared_on_request() -> None:
    assert said_in_fit(new_model(), callbacks=[Spoil()]) == []
    for setting, count in (("every:2", 1), ("off", 0)):
        hvd.shutdown()
        os.environ["RUEDA_CHECK"] = setting
        try:
            hvd.init()
            said = said_in_fit(new_model(), callbacks=[Spoil()])
        finally:
            del os.environ["RUEDA_CHECK"]
        assert len(said) == (count if hvd.rank() == 0 else 0), (setting, said)
    hvd.shutdown()
    hvd.init()


def case_a_failure_names_its_cause() -> None:
    optimizer = hvd.DistributedOptimizer(sgd())
    model = new_model()
    if hvd.rank() == 1:
        model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3), keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    raises(Exception, lambda: fit(model, [hvd.rank()]), "shape")
