# SPDX-License-Identifier: Apache-2.0
"""Gradients of our ops, as Horovod has them; the token of an op has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops as tf_ops

from rueda import _core
from rueda.common.basics import Average

from . import mpi_ops


def _set_of(op: Any) -> int:
    return int(op.get_attr("process_set_id"))


def _scaling(op: Any) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in ("prescale_factor", "postscale_factor")}


def _ignores_scope(op: Any) -> bool:
    return bool(op.get_attr("ignore_name_scope"))


def _average(gradient: Any, set_id: int) -> Any:
    return mpi_ops.reduce_by_id(gradient, None, Average, 1.0, 1.0, False, set_id)


# ---- Reductions -------------------------------------------------------------


@tf_ops.RegisterGradient("HorovodAllreduce")
def _of_allreduce(op: Any, gradient: Any) -> list[Any]:
    """The gradient is reduced as the tensor was."""
    reduced = mpi_ops.reduce_by_id(
        gradient, None, op.get_attr("reduce_op"), op.get_attr("prescale_factor"),
        op.get_attr("postscale_factor"), _ignores_scope(op), _set_of(op),
    )  # fmt: skip
    return [reduced, None]


@tf_ops.RegisterGradient("HorovodGroupedAllreduce")
def _of_grouped_allreduce(op: Any, *gradients: Any) -> list[Any]:
    reduced = mpi_ops.grouped(
        "HorovodGroupedAllreduce", gradients, None, _ignores_scope(op), _set_of(op),
        {"reduce_op": op.get_attr("reduce_op"), **_scaling(op)},
    )  # fmt: skip
    return [*reduced, None]


def _spread(op: Any, gradient: Any) -> Any:
    """What the gradient of a reducescatter is gathered from."""
    members = len(_core.set_ranks(_set_of(op)) or [0])
    factor = op.get_attr("prescale_factor") * op.get_attr("postscale_factor")
    if op.get_attr("reduce_op") != Average:
        factor *= members
    return gradient if factor == 1.0 else gradient * tf.cast(factor, gradient.dtype)


@tf_ops.RegisterGradient("HorovodReducescatter")
def _of_reducescatter(op: Any, gradient: Any) -> list[Any]:
    gathered = mpi_ops.gather_by_id(_spread(op, gradient), None, _ignores_scope(op), _set_of(op))
    return [gathered, None]


@tf_ops.RegisterGradient("HorovodGroupedReducescatter")
def _of_grouped_reducescatter(op: Any, *gradients: Any) -> list[Any]:
    gathered = mpi_ops.grouped(
        "HorovodGroupedAllgather", [_spread(op, one) for one in gradients], None,
        _ignores_scope(op), _set_of(op), {},
    )  # fmt: skip
    return [*gathered, None]


# ---- Rows of all ranks ------------------------------------------------------


def _own_rows(gradients: Sequence[Any], rows: Sequence[Any], set_id: int) -> list[Any]:
    """My slices of the averaged gradients of what was gathered."""
    members = _core.set_ranks(set_id) or [0]
    me = members.index(_core.rank())
    counts = mpi_ops.gather_by_id(tf.stack(list(rows))[tf.newaxis], None, False, set_id)
    starts = tf.reduce_sum(counts[:me], axis=0)
    return [
        _average(gradient, set_id)[starts[i] : starts[i] + rows[i]]
        for i, gradient in enumerate(gradients)
    ]


@tf_ops.RegisterGradient("HorovodAllgather")
def _of_allgather(op: Any, gradient: Any) -> list[Any]:
    rows = [tf.shape(op.inputs[0])[0]]
    return [*_own_rows([gradient], rows, _set_of(op)), None]


@tf_ops.RegisterGradient("HorovodGroupedAllgather")
def _of_grouped_allgather(op: Any, *gradients: Any) -> list[Any]:
    rows = [tf.shape(tensor)[0] for tensor in op.inputs[:-1]]
    return [*_own_rows(gradients, rows, _set_of(op)), None]


@tf_ops.RegisterGradient("HorovodAlltoall")
def _of_alltoall(op: Any, gradient: Any, _: Any) -> list[Any]:
    """Rows of the gradient go back to where the rows came from."""
    returned = mpi_ops.alltoall_by_id(
        gradient, op.outputs[1], None, _ignores_scope(op), _set_of(op)
    )
    return [returned[0], None, None]


# ---- Broadcast --------------------------------------------------------------


def _of_root(op: Any, gradient: Any) -> Any:
    """The averaged gradient belongs to the root; the others' input had no effect."""
    averaged = _average(gradient, _set_of(op))
    return averaged if _core.rank() == op.get_attr("root_rank") else averaged * 0


@tf_ops.RegisterGradient("HorovodBroadcast")
def _of_broadcast(op: Any, gradient: Any) -> list[Any]:
    return [_of_root(op, gradient), None]


@tf_ops.RegisterGradient("HorovodGroupedBroadcast")
def _of_grouped_broadcast(op: Any, *gradients: Any) -> list[Any]:
    return [*(_of_root(op, one) for one in gradients), None]
