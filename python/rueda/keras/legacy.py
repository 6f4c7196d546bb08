# SPDX-License-Identifier: Apache-2.0
"""Distributed optimizers of Keras 2, of both kinds: today's and ``optimizers.legacy``.

``minimize()``, which ``fit()`` calls, computes gradients and applies them; a loop of one's
own may only apply. So gradients are reduced when they are computed, else when they are
applied. Those of several passes are added up, and reduced, when they are applied.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from . import backend
from .flavor import keras
from .optimizer import Distributed, _class_of, _copy, reducer_of
from .options import Options

__all__ = ["distribute"]

Pairs = list[tuple[Any, Any]]


class _Passes:
    """Sums of gradients, between the steps in which they are reduced."""

    def __init__(self, gradients: list[Any]) -> None:
        self.counter = tf.Variable(0, trainable=False, name="passes")
        self.sums = [
            tf.Variable(tf.zeros(one.shape, one.dtype), trainable=False) for one in gradients
        ]

    def add(self, gradients: list[Any]) -> None:
        self.counter.assign_add(1)
        for total, gradient in zip(self.sums, gradients):
            total.assign_add(gradient)

    def take(self) -> list[Any]:
        """Return the sums, and begin with zero again."""
        totals = [tf.identity(total) for total in self.sums]
        with tf.control_dependencies(totals):
            self.counter.assign(0)
            for total in self.sums:
                total.assign(tf.zeros_like(total))
        return totals


class _Keras2(Distributed):
    """The methods of Keras 2."""

    _HAS_AGGREGATE_GRAD = True

    @property
    def _agg_helper(self) -> _Passes | None:
        return self.__dict__.get("_rueda_passes")

    def _computed(self, pairs: Any) -> Pairs:
        """Reduce what was computed, and remember it."""
        pairs = list(pairs)
        if self._rueda_options.passes > 1 or self._is_reduced:
            return pairs
        self.__dict__["_rueda_is_reduced"] = True
        return self._reduced(pairs)

    @property
    def _is_reduced(self) -> bool:
        return self.__dict__.get("_rueda_is_reduced", False)

    def _reduced(self, pairs: Pairs) -> Pairs:
        variables = [variable for _, variable in pairs]
        gradients = self._rueda.reduce([gradient for gradient, _ in pairs], variables)
        return list(zip(gradients, variables))

    @backend.as_it_is
    def compute_gradients(self, *args: Any, **kwargs: Any) -> Pairs:
        return self._computed(super().compute_gradients(*args, **kwargs))

    @backend.as_it_is
    def _compute_gradients(self, *args: Any, **kwargs: Any) -> Pairs:
        """The old optimizers' name, which scripts use with all of them."""
        known = getattr(super(), "_compute_gradients", None) or super().compute_gradients
        return self._computed(known(*args, **kwargs))

    @backend.as_it_is
    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = list(grads_and_vars)
        is_reduced = self.__dict__.pop("_rueda_is_reduced", False)
        if self._rueda_options.passes > 1:
            return self._apply_in_last_pass(pairs, *args, **kwargs)
        if not is_reduced:
            pairs = self._reduced(pairs)
        return super().apply_gradients(pairs, *args, **kwargs)

    def _apply_in_last_pass(self, pairs: Pairs, *args: Any, **kwargs: Any) -> Any:
        self._rueda.note_step()
        pairs = [(self._as_dense(one), variable) for one, variable in pairs if one is not None]
        variables = [variable for _, variable in pairs]
        _ = self.iterations  # makes the variable, which a branch may not
        if self._agg_helper is None:
            with tf.init_scope():
                self.__dict__["_rueda_passes"] = _Passes(variables)
                if hasattr(self, "build"):
                    self.build(variables)
        helper = self._agg_helper
        helper.add([gradient for gradient, _ in pairs])
        options = self._rueda_options
        scale = 1.0 / options.passes if options.is_average_of_passes else 1.0

        def step() -> Any:
            totals = self._rueda.reduce(helper.take(), variables, scale)
            super(_Keras2, self).apply_gradients(zip(totals, variables), *args, **kwargs)
            return tf.identity(self.iterations)

        def count() -> Any:
            return tf.identity(self.iterations.assign_add(1))

        return tf.cond(tf.equal(helper.counter, options.passes), step, count)

    def _as_dense(self, gradient: Any) -> Any:
        if not isinstance(gradient, tf.IndexedSlices):
            return gradient
        if not self._rueda_options.sparse_as_dense:
            raise ValueError(
                "gradients of tf.IndexedSlices are not summed up over several passes; give "
                "sparse_as_dense=True to DistributedOptimizer"
            )
        return tf.convert_to_tensor(gradient)


def _bases() -> tuple[type, ...]:
    found = [keras.optimizers.Optimizer]
    old = getattr(keras.optimizers, "legacy", None)
    if old is not None:
        # The package of Keras 2.12 has only the module, tf.keras and tf_keras the name.
        found.append(getattr(old, "Optimizer", None) or old.optimizer_v2.OptimizerV2)
    return tuple(found)


def distribute(optimizer: Any, chosen: Options) -> Any:
    """Return a distributed optimizer that has all that this one has, its state included."""
    if not isinstance(optimizer, _bases()):
        raise TypeError(
            f"DistributedOptimizer takes an optimizer of {keras.__name__} {keras.__version__}, "
            f"not a {type(optimizer).__module__}.{type(optimizer).__name__}. For Keras 3 unset "
            "TF_USE_LEGACY_KERAS"
        )
    if reducer_of(optimizer) is not None:
        raise ValueError("this optimizer is distributed already; give the one it was made of")
    _teach_loss_scale()
    return _copy(_class_of(_Keras2, type(optimizer), chosen), optimizer)


@functools.cache
def _teach_loss_scale() -> None:
    """Have all ranks skip a step with infinite gradients, or none; see loss_scale.py.

    Here the optimizer inside reduces before the one around it looks for infinite numbers.
    """
    base = keras.mixed_precision.LossScaleOptimizer
    kinds = {base, *base.__subclasses__()}
    kinds |= {kind for one in list(kinds) for kind in one.__subclasses__()}
    for kind in kinds:
        if "apply_gradients" in vars(kind) and not issubclass(kind, Distributed):
            kind.apply_gradients = _reducing_first(kind.apply_gradients)


def _reducing_first(own: Any) -> Any:
    @backend.as_it_is
    @functools.wraps(own)
    def apply_gradients(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        inner = self.inner_optimizer
        if not isinstance(inner, _Keras2) or inner._rueda_options.passes > 1:
            return own(self, grads_and_vars, *args, **kwargs)
        pairs = inner._computed(grads_and_vars)
        try:
            return own(self, pairs, *args, **kwargs)
        finally:
            inner.__dict__.pop("_rueda_is_reduced", None)

    return apply_gradients
