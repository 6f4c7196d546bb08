# SPDX-License-Identifier: Apache-2.0
"""Reductions of whatever can be a gradient: dense or sparse, compressed, in groups."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from rueda.common.basics import Adasum, Average, Sum
from rueda.common.process_sets import ProcessSet, global_process_set
from rueda.common.util import handle_average_backwards_compatibility as _op_of

from . import mpi_ops
from .compression import Compression

__all__ = ["allreduce", "grouped_allreduce", "grouped_reducescatter", "reducescatter"]


def size_of(process_set: ProcessSet) -> Any:
    """The number of ranks; in an elastic job a number that is asked when the graph runs."""
    if os.environ.get("HOROVOD_ELASTIC") == "1":
        return mpi_ops.size_op(process_set.process_set_id)
    return process_set.size()


def divide(gradient: Any, by: Any) -> Any:
    """Divide a gradient, dense or sparse, by a number of any type."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(divide(gradient.values, by), gradient.indices, gradient.dense_shape)
    return gradient / tf.cast(by, gradient.dtype)


def _as_given(tensor: Any) -> Any:
    return tensor if isinstance(tensor, tf.IndexedSlices) else tf.convert_to_tensor(tensor)


# ---- Sparse ------------------------------------------------------------------


def _check_sparse(op: int) -> None:
    if op == Adasum:
        raise NotImplementedError("Adasum is not done on sparse tensors; use sparse_as_dense=True")
    if op not in (Average, Sum):
        raise NotImplementedError("sparse tensors (tf.IndexedSlices) take Average or Sum")


def _put_together(
    tensor: tf.IndexedSlices,
    values: Any,
    indices: Any,
    op: int,
    scale: float,
    process_set: ProcessSet,
) -> tf.IndexedSlices:
    if scale != 1.0:
        values = values * tf.cast(scale, values.dtype)
    if op == Average:
        values = divide(values, size_of(process_set))
    return tf.IndexedSlices(values, indices, dense_shape=tensor.dense_shape)


def _reduce_sparse(
    tensor: tf.IndexedSlices,
    op: int,
    scale: float,
    name: str | None,
    process_set: ProcessSet,
    ignore_name_scope: bool,
) -> tf.IndexedSlices:
    """Rows of all ranks, which add up where they meet."""

    def gather(part: Any, what: str) -> Any:
        label = None if name is None else f"{name}_{what}"
        return mpi_ops.allgather(part, label, ignore_name_scope, process_set)

    values, indices = gather(tensor.values, "values"), gather(tensor.indices, "indices")
    return _put_together(tensor, values, indices, op, scale, process_set)


# ---- Allreduce ---------------------------------------------------------------


def allreduce(
    tensor: Any,
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
) -> Any:
    """Return the reduction of a tensor, variable or ``tf.IndexedSlices`` over all ranks.

    Of sparse tensors the rows of all ranks are put together.
    """
    op = _op_of(op, average)
    tensor = _as_given(tensor)
    if isinstance(tensor, tf.IndexedSlices):
        _check_sparse(op)
        scale = prescale_factor * postscale_factor
        with tf.device(device_sparse):
            return _reduce_sparse(tensor, op, scale, name, process_set, ignore_name_scope)
    with tf.device(device_dense):
        sent, context = compression.compress(tensor)
        reduced = mpi_ops._allreduce(
            sent, name, op, prescale_factor, postscale_factor, ignore_name_scope, process_set
        )
        return compression.decompress(reduced, context)


def grouped_allreduce(
    tensors: Sequence[Any],
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    name: str | None = None,
) -> list[Any]:
    """Return the reductions of tensors, which are done together.

    Dense and sparse tensors may be mixed: they make up two groups.
    """
    op = _op_of(op, average)
    results = [_as_given(tensor) for tensor in tensors]
    sparse = [i for i, one in enumerate(results) if isinstance(one, tf.IndexedSlices)]
    dense = [i for i, one in enumerate(results) if not isinstance(one, tf.IndexedSlices)]
    if sparse:
        _check_sparse(op)
        scale = prescale_factor * postscale_factor
        with tf.device(device_sparse):
            reduced = _reduce_all_sparse(
                [results[i] for i in sparse], op, scale, name, process_set, ignore_name_scope
            )
        for i, one in zip(sparse, reduced):
            results[i] = one
    if dense:
        with tf.device(device_dense):
            pairs = [compression.compress(results[i]) for i in dense]
            reduced = mpi_ops._grouped_allreduce(
                [sent for sent, _ in pairs], name, op, prescale_factor, postscale_factor,
                ignore_name_scope, process_set,
            )  # fmt: skip
            for i, one, (_, context) in zip(dense, reduced, pairs):
                results[i] = compression.decompress(one, context)
    return results


def _reduce_all_sparse(
    tensors: Sequence[tf.IndexedSlices],
    op: int,
    scale: float,
    name: str | None,
    process_set: ProcessSet,
    ignore_name_scope: bool,
) -> list[tf.IndexedSlices]:
    def gather(parts: list[Any], what: str) -> list[Any]:
        label = None if name is None else f"{name}_{what}"
        return mpi_ops.grouped_allgather(parts, label, ignore_name_scope, process_set)

    values = gather([one.values for one in tensors], "values")
    indices = gather([one.indices for one in tensors], "indices")
    return [
        _put_together(*parts, op, scale, process_set) for parts in zip(tensors, values, indices)
    ]


# ---- Reducescatter -----------------------------------------------------------


def reducescatter(
    tensor: Any,
    device_dense: str = "",
    compression: Any = Compression.none,
    op: int = Average,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Return this rank's rows of the reduction of a tensor over all ranks.

    Rows are shared equally; if that does not work out the lowest ranks have one
    more.
    """
    with tf.device(device_dense):
        sent, context = compression.compress(tf.convert_to_tensor(tensor))
        reduced = mpi_ops._reducescatter(
            sent, name, op, ignore_name_scope, process_set, prescale_factor, postscale_factor
        )
        return compression.decompress(reduced, context)


def grouped_reducescatter(
    tensors: Sequence[Any],
    device_dense: str = "",
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Any]:
    """:func:`reducescatter` of tensors that are done together."""
    with tf.device(device_dense):
        pairs = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors]
        reduced = mpi_ops._grouped_reducescatter(
            [sent for sent, _ in pairs], None, op, False, process_set, prescale_factor,
            postscale_factor,
        )  # fmt: skip
        return [compression.decompress(one, context) for one, (_, context) in zip(reduced, pairs)]
