# SPDX-License-Identifier: Apache-2.0
"""Do ranks have the same variables? For tapes and for optimizers of TensorFlow 1.

Scripts broadcast before the first step or right after it, when the optimizer has made
its variables. So what is compared is the variables before the second step, and before
every Nth one after it (``RUEDA_CHECK``). In a graph one small call to Python counts the
steps, and another, in a branch, hashes the variables in those steps in which that is due.

A program makes a tape for each step, so the first of the variables that are reduced
together keeps their :class:`Agreement`.
"""

from __future__ import annotations

import itertools
import warnings
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from rueda import _core
from rueda.common import arrays
from rueda.common.agreement import Agreement
from rueda.common.operations import set_of
from rueda.common.process_sets import ProcessSet

from .library import is_eager

__all__ = ["check"]

_REMEDY = "hvd.broadcast_variables(model.variables, root_rank=0)"
_KEPT = "_rueda_agreements"

# By process set; ranks come to their first steps in the same order.
_numbers: defaultdict[int, itertools.count[int]] = defaultdict(itertools.count)


class _Later(Agreement):
    """Begins with the second step, after which every model is the same."""

    def __init__(self, process_set: ProcessSet) -> None:
        super().__init__(process_set)
        self.number = next(_numbers[set_of(process_set)])
        self.forget()

    def forget(self) -> None:
        self._steps_left = 1


def check(variables: Sequence[Any], process_set: ProcessSet) -> Any:
    """Compare these in a step in which that is due; in a graph return an op that does it.

    None if there is nothing to wait for.
    """
    shared = [one for one in map(_unwrapped, variables) if isinstance(one, tf.Variable)]
    if _core.check_every() == 0 or not shared or (process_set.size() or 1) < 2:
        return None
    agreement = _agreement_of(shared, process_set)
    names = [_name_of(one) for one in shared]
    if is_eager():
        if agreement.is_due():
            _compare(agreement, names, [one.numpy() for one in shared])
        return None

    def compare() -> Any:
        values = [tf.convert_to_tensor(one) for one in shared]
        return tf.numpy_function(
            lambda *arrays_: _compare(agreement, names, arrays_), values, tf.bool
        )

    is_due = tf.numpy_function(agreement.is_due, [], tf.bool)
    is_due.set_shape([])
    return tf.cond(is_due, compare, lambda: tf.constant(False)).op


def _unwrapped(variable: Any) -> Any:
    """That of Keras has the one of TensorFlow in it."""
    return getattr(variable, "_value", variable)


def _name_of(variable: Any) -> str:
    return str(variable.name).partition(":")[0]


def _agreement_of(variables: Sequence[Any], process_set: ProcessSet) -> _Later:
    """The one of these variables, made when they are first seen."""
    kept = variables[0].__dict__.setdefault(_KEPT, {})
    key = (set_of(process_set), tuple(id(one) for one in variables))
    if key not in kept:
        kept[key] = _Later(process_set)
    return kept[key]


def _compare(agreement: _Later, names: Sequence[str], values: Sequence[Any]) -> bool:
    # By their places: ranks may have given the same variable other names.
    keys = [f"{agreement.number}.{i:06}" for i in range(len(names))]
    digests = {key: arrays.digest_of(value) for key, value in zip(keys, values)}
    words = agreement.compare(digests, _REMEDY)
    if words is not None:
        for key, name in zip(keys, names):
            words = words.replace(f'"{key}"', f'"{name}"')
        warnings.warn(words, stacklevel=2)
    return True
