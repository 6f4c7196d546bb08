# SPDX-License-Identifier: Apache-2.0
"""Optimizers of TensorFlow 1 that reduce gradients; those of Keras are rueda.tensorflow.keras."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rueda.common.basics import Adasum, Average
from rueda.common.process_sets import ProcessSet, global_process_set

from . import mpi_ops
from .aggregation import LocalGradientAggregationHelper
from .collectives import allreduce
from .compression import Compression
from .library import is_eager
from .reduction import Reducer, check_adasum, check_options

__all__ = ["DistributedOptimizer"]

_Optimizer = tf.compat.v1.train.Optimizer


class _Wrapper(_Optimizer):
    """Another optimizer, to which everything is left but the gradients."""

    def __init__(self, optimizer: Any, name: str, use_locking: bool) -> None:
        super().__init__(name=name, use_locking=use_locking)
        self._optimizer = optimizer

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        return self._optimizer.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.variables(*args, **kwargs)


class _DistributedOptimizer(_Wrapper):
    """Reduces what ``compute_gradients()`` of another optimizer returns."""

    def __init__(
        self,
        optimizer: Any,
        name: str,
        use_locking: bool,
        reducer: Reducer,
        process_set: ProcessSet,
        aggregation: LocalGradientAggregationHelper | None,
    ) -> None:
        super().__init__(optimizer, name, use_locking)
        self._reducer = reducer
        self._aggregation = aggregation
        self.process_set = process_set

    def register_local_var(self, var: Any) -> None:
        """Do not reduce this variable's gradient."""
        self._reducer.set_local(var)

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        gradients, variables = [one for one, _ in pairs], [one for _, one in pairs]
        reduce = self._aggregation.compute_gradients if self._aggregation else self._reducer.reduce
        return list(zip(reduce(gradients, variables), variables))

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        pairs = list(grads_and_vars)

        def apply() -> Any:
            return super(_DistributedOptimizer, self).apply_gradients(pairs, global_step, name)

        if self._aggregation is None:
            return apply()
        return self._aggregation.apply_gradients(
            apply, self._optimizer, pairs, global_step=global_step
        )


def _copy_of(variable: Any) -> Any:
    """Its value now. That of an old variable, not of a resource, changes where it is."""
    return tf.raw_ops.DeepCopy(x=variable.read_value())


class _AdasumOptimizer(_Wrapper):
    """Lets another optimizer make its step, and reduces by Adasum how variables moved."""

    def __init__(
        self, optimizer: Any, name: str, use_locking: bool, compression: Any, passes: int
    ) -> None:
        super().__init__(optimizer, name, use_locking)
        self._compression = compression
        self._passes = passes

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        pairs = [(grad, var) for grad, var in grads_and_vars if grad is not None]
        variables = [var for _, var in pairs]
        scope = tf.compat.v1.variable_scope(f"{self._name}_starts", reuse=tf.compat.v1.AUTO_REUSE)
        with scope, tf.control_dependencies(None):
            count = self._variable("count", tf.zeros([], tf.int32))
            starts = [
                self._variable(str(i), tf.zeros(var.shape, var.dtype.base_dtype))
                for i, var in enumerate(variables)
            ]
        # Where the last exchange left the variables, since they may have been loaded.
        with tf.control_dependencies([grad for grad, _ in pairs]):
            keep = tf.cond(
                tf.equal(count.read_value() % self._passes, 0),
                lambda: tf.group(*[s.assign(_copy_of(v)) for s, v in zip(starts, variables)]),
                tf.no_op,
            )
        with tf.control_dependencies([keep]):
            step = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        with tf.control_dependencies([step]):
            counted = count.assign_add(1, read_value=True)
        with tf.control_dependencies([counted]):
            return tf.cond(
                tf.equal(counted % self._passes, 0),
                lambda: self._exchange(variables, starts),
                tf.no_op,
            )

    @staticmethod
    def _variable(name: str, initial: Any) -> Any:
        return tf.compat.v1.get_variable(
            name, initializer=initial, trainable=False, use_resource=True,
            collections=[tf.compat.v1.GraphKeys.GLOBAL_VARIABLES],
        )  # fmt: skip

    def _exchange(self, variables: list[Any], starts: list[Any]) -> Any:
        moved = []
        for i, (var, start) in enumerate(zip(variables, starts)):
            begin = start.read_value()
            way = var.read_value() - begin
            reduced = allreduce(
                way, op=Adasum, compression=self._compression, name=f"{self._name}_delta_{i}"
            )
            moved.append(var.assign(begin + reduced))
        return tf.group(*moved)


def DistributedOptimizer(  # noqa: N802 -- Horovod's name
    optimizer: Any,
    name: str | None = None,
    use_locking: bool = False,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Return an optimizer like this one that reduces gradients over all ranks.

    Takes those of TensorFlow 1 (``tf.compat.v1.train``) and of Keras; the latter are
    wrapped by ``rueda.tensorflow.keras``.
    """
    groups = check_options(op, gradient_predivide_factor, num_groups, groups)
    check_adasum(op, average_aggregated_gradients)
    if not isinstance(optimizer, _Optimizer):
        return _distribute_keras(
            optimizer, name=name, compression=compression, sparse_as_dense=sparse_as_dense,
            gradient_predivide_factor=gradient_predivide_factor, op=op,
            backward_passes_per_step=backward_passes_per_step,
            average_aggregated_gradients=average_aggregated_gradients, groups=groups,
            process_set=process_set, scale_local_gradients=scale_local_gradients,
        )  # fmt: skip
    if op == Adasum:
        if process_set.process_set_id != 0:
            raise NotImplementedError("Adasum is done only by all ranks, not by a process set")
        return _AdasumOptimizer(
            optimizer, name or f"DistributedDelta{type(optimizer).__name__}", use_locking,
            compression, backward_passes_per_step,
        )  # fmt: skip
    name = name or f"Distributed{type(optimizer).__name__}"
    reducer = Reducer(
        name, op, compression, sparse_as_dense, gradient_predivide_factor, groups, process_set,
        scale_local_gradients,
    )  # fmt: skip
    aggregation = None
    if backward_passes_per_step > 1:
        if is_eager():
            raise ValueError(
                "backward_passes_per_step of an optimizer of TensorFlow 1 is for graphs; where "
                "ops run at once use an optimizer of Keras's"
            )
        aggregation = LocalGradientAggregationHelper(
            backward_passes_per_step, reducer.reduce, sparse_as_dense,
            average_aggregated_gradients, mpi_ops.rank(),
            LocalGradientAggregationHelper._OPTIMIZER_TYPE_LEGACY, process_set,
            scale_local_gradients, name,
        )  # fmt: skip
    return _DistributedOptimizer(optimizer, name, use_locking, reducer, process_set, aggregation)


def _distribute_keras(optimizer: Any, **options: Any) -> Any:
    if options["op"] == Adasum:
        raise ValueError("Adasum is not done by optimizers of Keras's")
    from . import keras

    return keras.DistributedOptimizer(optimizer, **options)
