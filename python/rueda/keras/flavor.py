# SPDX-License-Identifier: Apache-2.0
"""Which Keras this process uses: Keras 3 with its back end, or Keras 2 with TensorFlow."""

from __future__ import annotations

import importlib
import os
from typing import Any

__all__ = ["IS_LEGACY", "back_end", "keras"]


def _is_wanted_legacy() -> bool:
    """TensorFlow reads the same variable, and then has tf_keras as tf.keras."""
    return os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")


def _find() -> Any:
    if _is_wanted_legacy():
        try:
            return importlib.import_module("tf_keras")
        except ImportError as error:
            if not (error.name or "").startswith("tf_keras"):
                raise
    found = importlib.import_module("keras")
    if int(found.__version__.split(".")[0]) < 3:
        # Its package does not have all names, nor the right ones: optimizers of TensorFlow 1.
        return importlib.import_module("tensorflow").keras
    if not _is_wanted_legacy():
        return found
    raise ImportError(
        "TF_USE_LEGACY_KERAS is set, but Keras 2 is not installed: install tf_keras, or unset "
        "the variable to use Keras 3"
    )


#: The package, ``keras`` or ``tf_keras``.
keras: Any = _find()

#: Is it Keras 2?
IS_LEGACY = int(keras.__version__.split(".")[0]) < 3


def back_end() -> str:
    """Return "tensorflow", "torch" or "jax", or another name that Keras has."""
    return "tensorflow" if IS_LEGACY else str(keras.backend.backend())
