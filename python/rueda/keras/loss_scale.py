# SPDX-License-Identifier: Apache-2.0
"""Mixed precision: all ranks skip a step, or none does.

``LossScaleOptimizer`` looks for infinite gradients and then leaves a step out. Keras puts
one around the optimizer of a model of ``mixed_float16`` by itself. Each rank would look at
its own gradients only, and wait in the reduction for a rank that has left the step out. So
its ``check_finite()`` asks all ranks if the optimizer inside is distributed.
"""

from __future__ import annotations

import functools
from typing import Any

from .flavor import keras

__all__ = ["teach"]


@functools.cache
def teach() -> None:
    """Replace the method, once in a process."""
    kind = getattr(keras.optimizers, "LossScaleOptimizer", None)
    own = getattr(kind, "check_finite", None)
    if own is None:
        return  # versions of Keras 3 before 3.5, whose loss scale is not dynamic

    @functools.wraps(own)
    def check_finite(self: Any, grads: Any) -> Any:
        from .optimizer import reducer_of

        flag = own(self, grads)
        reducer = reducer_of(self)
        return flag if reducer is None else reducer.all_of(flag)

    kind.check_finite = check_finite
