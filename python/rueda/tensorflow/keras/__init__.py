# SPDX-License-Identifier: Apache-2.0
"""Rueda for ``tf.keras``: all of rueda.keras, where Keras runs on TensorFlow.

That is Keras 3, or Keras 2 if ``TF_USE_LEGACY_KERAS=1``. ``import horovod.tensorflow.keras``
is this module, too.
"""

from __future__ import annotations

from rueda.keras import *  # noqa: F403
from rueda.keras import __all__, callbacks, elastic, flavor

if flavor.back_end() != "tensorflow":
    raise ImportError(
        f"tf.keras needs TensorFlow, but Keras runs on {flavor.back_end()} here: import "
        "rueda.keras, or set KERAS_BACKEND=tensorflow"
    )

__all__ = [*__all__, "callbacks", "elastic"]
