# SPDX-License-Identifier: Apache-2.0
"""Run an example of Horovod's for TensorFlow or Keras, unmodified, in a small world.

    run_old_example.py [--steps 20] [--epochs 2] SCRIPT [word...]

MNIST's pictures are scikit-learn's digits at the same size, so nothing is downloaded.
Training is cut short, as the options say. Names of TensorFlow 1 that one example still
uses, and ``keras`` as the name of Keras 2, are given to it where they are gone.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from typing import Any

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

HELD_OUT = 360


def digits(*_: Any, **__: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """What ``mnist.load_data()`` returns: 0 to 255, 28 x 28, training and test."""
    known = load_digits()
    pictures = np.kron(known.images, np.ones((3, 3))) * 255 / 16
    pictures = np.pad(pictures, ((0, 0), (2, 2), (2, 2))).astype("uint8")
    order = np.random.RandomState(1).permutation(len(pictures))
    pictures, labels = pictures[order], known.target[order].astype("uint8")
    return (pictures[HELD_OUT:], labels[HELD_OUT:]), (pictures[:HELD_OUT], labels[:HELD_OUT])


def cut(steps: int, epochs: int) -> None:
    """Make training as short as the options say."""
    take, fit = tf.data.Dataset.take, tf.keras.Model.fit

    def shorter_fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name, most in (("epochs", epochs), ("steps_per_epoch", steps), ("validation_steps", 2)):
            if kwargs.get(name):
                kwargs[name] = min(kwargs[name], most)
        return fit(self, *args, **kwargs)

    tf.data.Dataset.take = lambda self, count, name=None: take(self, min(count, steps))
    tf.keras.Model.fit = shorter_fit
    if not hasattr(tf.keras.Model, "fit_generator"):
        tf.keras.Model.fit_generator = shorter_fit


def give_old_names() -> None:
    keras = tf.keras
    if sys.modules.get("tf_keras") is not None:
        import tf_keras as keras

        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "tf_keras":
                sys.modules["keras" + name[len("tf_keras") :]] = module
        sys.modules["keras"] = keras
        keras.datasets.mnist.load_data = digits
    tf.ConfigProto, tf.Session = tf.compat.v1.ConfigProto, tf.compat.v1.Session
    if not hasattr(keras.backend, "set_session"):
        keras.backend.set_session = tf.compat.v1.keras.backend.set_session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("script")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    tf.keras.datasets.mnist.load_data = digits
    cut(options.steps, options.epochs)
    with open(options.script, encoding="utf-8") as file:
        if "\nimport keras\n" in file.read():
            give_old_names()
    sys.argv = [options.script, *options.words]
    runpy.run_path(options.script, run_name="__main__")


if __name__ == "__main__":
    main()
