# SPDX-License-Identifier: Apache-2.0
"""Gradients of several backward passes, added up before they are reduced; for graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import tensorflow as tf

from rueda.common.process_sets import ProcessSet, global_process_set

from .collectives import divide

__all__ = ["LocalGradientAggregationHelper"]


class LocalGradientAggregationHelper:
    """Lets every n-th pass of a graph reduce the sum of the gradients since the last.

    Its variables, a counter and the sums, are local ones: run
    ``tf.compat.v1.local_variables_initializer()``.
    """

    _OPTIMIZER_TYPE_KERAS = "optimizer_type_keras"
    _OPTIMIZER_TYPE_LEGACY = "optimizer_type_legacy"

    def __init__(
        self,
        backward_passes_per_step: int,
        allreduce_func: Callable[[list[Any], list[Any]], list[Any]],
        sparse_as_dense: bool,
        average_aggregated_gradients: bool,
        rank: int,
        optimizer_type: str,
        process_set: ProcessSet = global_process_set,
        scale_local_gradients: bool = True,
        name: str = "",
    ) -> None:
        if backward_passes_per_step < 1:
            raise ValueError(
                f"backward_passes_per_step has to be 1 or more, not {backward_passes_per_step}"
            )
        self._passes = backward_passes_per_step
        self._reduce = allreduce_func
        self._sparse_as_dense = sparse_as_dense
        self._is_average = average_aggregated_gradients
        self._name = name
        self.counter: Any = None

    def _dense(self, gradient: Any) -> Any:
        if not isinstance(gradient, tf.IndexedSlices):
            return gradient
        if not self._sparse_as_dense:
            raise ValueError(
                "backward_passes_per_step adds up dense gradients only; use sparse_as_dense=True"
            )
        return tf.convert_to_tensor(gradient)

    def _variable(self, name: str, initial: Any) -> Any:
        scope = tf.compat.v1.variable_scope(
            f"aggregation_of_{self._name}", reuse=tf.compat.v1.AUTO_REUSE
        )
        with scope, tf.control_dependencies(None):
            return tf.compat.v1.get_variable(
                name, initializer=initial, trainable=False, use_resource=True,
                collections=[tf.compat.v1.GraphKeys.LOCAL_VARIABLES],
            )  # fmt: skip

    def compute_gradients(self, grads: Sequence[Any], vars: Sequence[Any]) -> list[Any]:
        """Return the gradients as they are, or in every n-th pass the reduced sums."""
        results = list(grads)
        places = [i for i, gradient in enumerate(grads) if gradient is not None]
        variables = [vars[i] for i in places]
        dense = [self._dense(grads[i]) for i in places]
        self.counter = self._variable("counter", tf.zeros([], tf.int32))
        sums = [
            self._variable(str(i), tf.zeros(gradient.shape, gradient.dtype))
            for i, gradient in zip(places, dense)
        ]
        before = self.counter.read_value()
        added = []
        for total, gradient in zip(sums, dense):
            # Not a product: what was added up may be infinite.
            kept = total.read_value()
            kept = tf.where(tf.equal(before, 0), tf.zeros_like(kept), kept)
            added.append(total.assign(kept + gradient))
        # The sums are read once all passes' additions have been made.
        with tf.control_dependencies(added):
            count = (before + 1) % self._passes
            counted = self.counter.assign(count)
        with tf.control_dependencies([counted]):
            outcome = tf.cond(
                tf.equal(count, 0),
                lambda: self._reduced([total.read_value() for total in sums], variables),
                lambda: [tf.identity(gradient) for gradient in dense],
            )
        for i, gradient in zip(places, outcome if isinstance(outcome, list) else [outcome]):
            results[i] = gradient
        return results

    def _reduced(self, sums: list[Any], variables: list[Any]) -> list[Any]:
        reduced = self._reduce(sums, variables)
        return [divide(one, self._passes) for one in reduced] if self._is_average else reduced

    def apply_gradients(
        self, apply_grads_closure: Callable[[], Any], optimizer: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Apply in every n-th pass; the others only count, where there is a global step."""
        step = kwargs.get("global_step")
        iterations = getattr(optimizer, "iterations", None)

        def count() -> Any:
            counters = [one for one in (step, iterations) if one is not None]
            return tf.group(*[one.assign_add(tf.ones([], one.dtype)) for one in counters])

        def apply() -> Any:
            return tf.group(apply_grads_closure())

        # Once the gradients are there, the counter is that of this pass.
        ready = [gradient for pairs in args[:1] for gradient, _ in pairs if gradient is not None]
        with tf.control_dependencies(ready):
            is_step = tf.equal(self.counter.read_value(), 0)
        return tf.cond(is_step, apply, count)
