# SPDX-License-Identifier: Apache-2.0
"""Mixed precision: all ranks skip a step, or none does.

``LossScaleOptimizer`` looks for infinite gradients and then leaves a step out. Keras puts
one around the optimizer of a model of ``mixed_float16`` by itself. Each rank would look at
its own gradients only, and wait in the reduction for a rank that has left the step out. So
its ``check_finite()`` asks all ranks if the optimizer inside is distributed, and a copy of it
has a distributed optimizer, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .flavor import keras

__all__ = ["teach"]


@functools.cache
def teach(again: Callable[..., Any]) -> None:
    """Replace the methods, once in a process. ``again`` makes a distributed one of a copy."""
    kind = getattr(keras.optimizers, "LossScaleOptimizer", None)
    if kind is None:
        return
    _teach_copying(kind, again)
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


def _teach_copying(kind: Any, again: Callable[..., Any]) -> None:
    own = kind.__reduce__

    @functools.wraps(own)
    def reduce(self: Any) -> tuple[Any, ...]:
        from .optimizer import reducer_of

        made = own(self)
        reducer = reducer_of(self)
        return made if reducer is None else (again, (made[1], reducer.options))

    kind.__reduce__ = reduce
