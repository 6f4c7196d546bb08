# SPDX-License-Identifier: Apache-2.0
"""``jit_compile`` of Keras 3 with TensorFlow, whose XLA cannot compile our ops.

``compile(jit_compile="auto")``, which is the default, compiles steps where there is a GPU.
With a distributed optimizer it does not; and ``jit_compile=True`` is refused in words.
"""

from __future__ import annotations

import functools
from typing import Any

from .flavor import IS_LEGACY, back_end, keras

__all__ = ["check", "teach"]


def _is_concerned() -> bool:
    return not IS_LEGACY and back_end() == "tensorflow"


@functools.cache
def teach() -> None:
    """Replace the method of models that decides for "auto", once in a process."""
    own = getattr(keras.Model, "_resolve_auto_jit_compile", None)
    if own is None or not _is_concerned():
        return

    @functools.wraps(own)
    def resolve(self: Any) -> bool:
        from .optimizer import reducer_of

        return reducer_of(getattr(self, "optimizer", None)) is None and own(self)

    keras.Model._resolve_auto_jit_compile = resolve


def check(model: Any) -> None:
    """Raise :class:`ValueError` for a step that TensorFlow would refuse to compile."""
    from .optimizer import reducer_of

    if not _is_concerned() or not getattr(model, "jit_compile", False):
        return
    reducer = reducer_of(getattr(model, "optimizer", None))
    if reducer is not None and not reducer.is_alone():
        raise ValueError(
            "TensorFlow's XLA cannot compile the step of a distributed optimizer: leave out "
            "jit_compile=True of compile(), or use the back end jax"
        )
