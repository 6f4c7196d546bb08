# SPDX-License-Identifier: Apache-2.0
"""Keras 3 on the back end of TensorFlow; see keras_cases.py and keras_warning_cases.py."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from keras_cases import *  # noqa: F403
from keras_cases import data, fit, in_folder, new_model
from keras_warning_cases import *  # noqa: F403
from rank_cases import cases_of, run_cases

if "KERAS_BACKEND" in os.environ:
    import keras
    import numpy as np
    import rueda.keras as hvd


def scalars(folder: str, tag: str) -> list[float]:
    """What TensorBoard shows of a tag, epoch by epoch."""
    import tensorflow as tf
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(folder)
    events.Reload()
    return [float(tf.make_ndarray(one.tensor_proto)) for one in events.Tensors(tag)]


def case_tensorboard_shows_the_average_of_all_ranks() -> None:
    if importlib.util.find_spec("tensorboard") is None:
        return
    mine: list[tuple[float, float]] = []

    class Look(keras.callbacks.Callback):
        """What this rank has before the average."""

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            mine.append((float(logs["loss"]), float(logs["val_loss"])))

    def check(folder: str) -> None:
        model = new_model()
        model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1 * hvd.size())), "mse")
        chosen = [Look(), hvd.callbacks.MetricAverageCallback()]
        if hvd.is_master():
            chosen.append(keras.callbacks.TensorBoard(folder, write_graph=False))
        fit(model, [hvd.rank()], epochs=3, callbacks=chosen,
            validation_data=data([hvd.rank()], 1))  # fmt: skip
        every = np.asarray(hvd.allgather_object(mine))
        assert every.shape == (hvd.size(), 3, 2)
        assert np.abs(every[0] - every[1]).min() > 1e-4
        if not hvd.is_master():
            return
        means = every.mean(axis=0)
        train, validation = os.path.join(folder, "train"), os.path.join(folder, "validation")
        np.testing.assert_allclose(scalars(train, "epoch_loss"), means[:, 0], rtol=1e-5)
        np.testing.assert_allclose(scalars(validation, "epoch_loss"), means[:, 1], rtol=1e-5)
        rates = scalars(train, "epoch_learning_rate")
        np.testing.assert_allclose(rates, [0.1 * hvd.size()] * 3, rtol=1e-5)

    in_folder(check)


test_case = cases_of(
    __name__, needs=("keras", "tensorflow"), limit_s=400, KERAS_BACKEND="tensorflow"
)

if __name__ == "__main__":
    run_cases(globals(), "rueda.keras")
