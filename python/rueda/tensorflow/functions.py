# SPDX-License-Identifier: Apache-2.0
"""Variables, the same on all ranks; objects are rueda.common.objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable

import tensorflow as tf

from rueda.common import objects
from rueda.common.process_sets import ProcessSet, global_process_set

from . import mpi_ops
from .library import is_eager

__all__ = [
    "BroadcastGlobalVariablesHook",
    "allgather_object",
    "broadcast_global_variables",
    "broadcast_object",
    "broadcast_object_fn",
    "broadcast_variables",
]

#: Broadcast together in an eager program: enough of them, and no second copy of a model.
_PART_BYTES = 64 << 20


# ---- Variables ---------------------------------------------------------------


def broadcast_variables(
    variables: Iterable[Any],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
    inplace: bool = False,
) -> Any:
    """Overwrite these variables on all ranks by those of the root.

    In a graph this is an op, to be run after the variables were initialized. New
    values need memory of their own for a moment: for all variables in a graph, for
    64 MiB of them where ops run at once. ``inplace`` is accepted and changes nothing.
    """
    variables = list(variables)
    if not variables:
        return None if is_eager() else tf.no_op()
    if not is_eager():
        return tf.group(*mpi_ops.broadcast_(variables, root_rank, process_set=process_set))
    for part in _parts_of(variables):
        mpi_ops.broadcast_(part, root_rank, process_set=process_set)
    return None


def _parts_of(variables: list[Any]) -> list[list[Any]]:
    """Runs of variables that are not too large together."""
    parts: list[list[Any]] = [[]]
    room = _PART_BYTES
    for variable in variables:
        dtype = tf.as_dtype(variable.dtype)
        count = tf.TensorShape(variable.shape).num_elements() or 1
        if parts[-1] and count * dtype.size > room:
            parts.append([])
            room = _PART_BYTES
        parts[-1].append(variable)
        room -= count * dtype.size
    return parts


def broadcast_global_variables(root_rank: int) -> Any:
    """The op that overwrites all variables of a graph by those of the root."""
    if is_eager():
        raise RuntimeError(
            "broadcast_global_variables is for graphs of TensorFlow 1; where ops run at once "
            "use broadcast_variables(model.variables, root_rank)"
        )
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """Overwrites all variables by those of the root when a session has begun."""

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.bcast_op: Any = None

    def begin(self) -> None:
        graph = tf.compat.v1.get_default_graph()
        if self.bcast_op is None or self.bcast_op.graph is not graph:
            with tf.device(self.device):
                self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self.bcast_op)


# ---- Objects -----------------------------------------------------------------


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the root's object on all ranks; on the root that is obj itself.

    No session is needed: objects do not travel through a graph.
    """
    return objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(
    root_rank: int = 0,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[Any], Any]:
    """Return a function that does :func:`broadcast_object` each time it is called."""
    return lambda obj: objects.broadcast_object(obj, root_rank, name, process_set)


def allgather_object(
    obj: Any,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Return the objects of all ranks of the set, in the order of the ranks."""
    return objects.allgather_object(obj, name, process_set)
