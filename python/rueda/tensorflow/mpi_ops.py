# SPDX-License-Identifier: Apache-2.0
"""Collectives as ops of TensorFlow, and who and where this rank is.

Ops in a graph match those of other ranks by their names in it. Ops that run at once
match by ``name``, or without one by their order. Every op can be differentiated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from rueda import _core
from rueda.common import life
from rueda.common.agreement import begin_again as _compare_again
from rueda.common.basics import basics as _basics  # noqa: F401 -- Horovod's tests look here
from rueda.common.life import *  # noqa: F403
from rueda.common.life import Average, ProcessSet, Sum, global_process_set
from rueda.common.operations import reduction_of, set_of
from rueda.common.util import handle_average_backwards_compatibility, num_rank_is_power_2

from .library import call, is_eager, token

__all__ = [
    *life.__all__,
    "allgather", "alltoall", "barrier", "broadcast", "broadcast_", "check_num_rank_power_of_2",
    "gpu_available", "grouped_allgather", "handle_average_backwards_compatibility", "join",
    "local_rank_op", "local_size_op", "process_set_included_op", "rank_op", "size_op",
]  # fmt: skip

check_num_rank_power_of_2 = num_rank_is_power_2


def gpu_available(ext_base_name: str = "tensorflow", verbose: bool = False) -> bool:
    """Are tensors of GPUs reduced where they are? No, TensorFlow copies them to the host."""
    return False


# ---- Process sets -----------------------------------------------------------


def _id_of(process_set: ProcessSet) -> int:
    """The id that an op has as an attribute, or :class:`ValueError`."""
    number = set_of(process_set)
    if number != 0 and _core.set_ranks(number) is None:
        raise ValueError(f"{process_set} is not there: it was never made, or was removed")
    return number


# ---- Names ------------------------------------------------------------------


def _normalize_name(name: str) -> str:
    """The name with a letter that any name may have in place of every other one."""
    return re.sub("[^a-zA-Z0-9_]", "_", name)


def _name_of(kind: str, tensors: Sequence[Any], name: str | None) -> str | None:
    """The name of an op in a graph: the caller's, or one made from the first tensor's."""
    if name is not None or is_eager() or not tensors:
        return name
    return f"{kind}_{_normalize_name(tensors[0].name)}"


def _named(
    kind: str, tensors: Sequence[Any], name: str | None, ignore_name_scope: bool, set_id: int
) -> dict[str, Any]:
    """Attributes that all ops with tensors have."""
    return {
        "name": _name_of(kind, tensors, name),
        "tensor_name": name or "",
        "ignore_name_scope": ignore_name_scope,
        "process_set_id": set_id,
    }


def _tensors_of(values: Sequence[Any]) -> list[Any]:
    return [tf.convert_to_tensor(value) for value in values]


# ---- Reductions -------------------------------------------------------------


def _allreduce(
    tensor: Any,
    name: str | None = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the reduction of a dense tensor over all ranks."""
    reduction_of(op, process_set)  # may raise
    return reduce_by_id(
        tensor, name, op, prescale_factor, postscale_factor, ignore_name_scope, _id_of(process_set)
    )


def reduce_by_id(
    tensor: Any,
    name: str | None,
    op: int,
    prescale_factor: float,
    postscale_factor: float,
    ignore_name_scope: bool,
    set_id: int,
) -> Any:
    """The same in the process set of this id, which is what an op knows."""
    tensor = tf.convert_to_tensor(tensor)
    return call(
        "horovod_allreduce", tensor, token(), reduce_op=op, prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
        **_named("HorovodAllreduce", [tensor], name, ignore_name_scope, set_id),
    )  # fmt: skip


def _grouped_allreduce(
    tensors: Sequence[Any],
    name: str | None = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Return the reductions of dense tensors, which are done together."""
    reduction_of(op, process_set)  # may raise
    tensors = _tensors_of(tensors)
    how = {"reduce_op": op, "prescale_factor": prescale_factor,
           "postscale_factor": postscale_factor}  # fmt: skip
    return grouped(
        "HorovodGroupedAllreduce", tensors, name, ignore_name_scope, _id_of(process_set), how
    )


#: The function of a group's op.
_GROUPED = {
    "HorovodGroupedAllreduce": "horovod_grouped_allreduce",
    "HorovodGroupedAllgather": "horovod_grouped_allgather",
    "HorovodGroupedBroadcast": "horovod_grouped_broadcast",
    "HorovodGroupedReducescatter": "horovod_grouped_reducescatter",
}


def grouped(
    kind: str,
    tensors: Sequence[Any],
    name: str | None,
    ignore_name_scope: bool,
    set_id: int,
    attributes: dict[str, Any],
) -> list[Any]:
    """Run the op of a group of tensors, in the process set of this id."""
    if not tensors:
        return []
    return list(
        call(
            _GROUPED[kind], list(tensors), token(),
            **_named(kind, tensors, name, ignore_name_scope, set_id), **attributes,
        )
    )  # fmt: skip


def _check_scatter(op: int) -> None:
    if op not in (Average, Sum):
        raise NotImplementedError("reducescatter is done by Average or Sum")


def _reducescatter(
    tensor: Any,
    name: str | None = None,
    op: int = Sum,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Return this rank's rows of the reduction of a tensor."""
    _check_scatter(op)
    tensor = tf.convert_to_tensor(tensor)
    return call(
        "horovod_reducescatter", tensor, token(), reduce_op=op, prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
        **_named("HorovodReducescatter", [tensor], name, ignore_name_scope, _id_of(process_set)),
    )  # fmt: skip


def _grouped_reducescatter(
    tensors: Sequence[Any],
    name: str | None = None,
    op: int = Sum,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Any]:
    """The same for several tensors, which are done together."""
    _check_scatter(op)
    how = {"reduce_op": op, "prescale_factor": prescale_factor,
           "postscale_factor": postscale_factor}  # fmt: skip
    return grouped(
        "HorovodGroupedReducescatter", _tensors_of(tensors), name, ignore_name_scope,
        _id_of(process_set), how,
    )  # fmt: skip


# ---- Rows of all ranks ------------------------------------------------------


def allgather(
    tensor: Any,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the rows of all ranks, one after another in the order of ranks.

    Ranks may have different numbers of rows; the other dimensions are equal.
    """
    return gather_by_id(tensor, name, ignore_name_scope, _id_of(process_set))


def gather_by_id(tensor: Any, name: str | None, ignore_name_scope: bool, set_id: int) -> Any:
    """The same in the process set of this id."""
    tensor = tf.convert_to_tensor(tensor)
    return call(
        "horovod_allgather", tensor, token(),
        **_named("HorovodAllgather", [tensor], name, ignore_name_scope, set_id),
    )  # fmt: skip


def grouped_allgather(
    tensors: Sequence[Any],
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """:func:`allgather` of tensors that are done together."""
    return grouped(
        "HorovodGroupedAllgather", _tensors_of(tensors), name, ignore_name_scope,
        _id_of(process_set), {},
    )  # fmt: skip


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Send rows to all ranks, and return what comes, in the order of ranks.

    ``splits`` says how many rows go to each rank; the result is then a pair of
    the rows and how many came from each. Without it all get as many.
    """
    pair = alltoall_by_id(tensor, splits, name, ignore_name_scope, _id_of(process_set))
    return pair[0] if splits is None else (pair[0], pair[1])


def alltoall_by_id(
    tensor: Any, splits: Any, name: str | None, ignore_name_scope: bool, set_id: int
) -> Any:
    """The same in the process set of this id, with a pair in any case."""
    tensor = tf.convert_to_tensor(tensor)
    numbers = tf.convert_to_tensor([] if splits is None else splits, dtype=tf.int32)
    return call(
        "horovod_alltoall", tensor, numbers, token(),
        **_named("HorovodAlltoall", [tensor], name, ignore_name_scope, set_id),
    )  # fmt: skip


# ---- Broadcast --------------------------------------------------------------


def broadcast(
    tensor: Any,
    root_rank: int,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the tensor of the root, which is a rank of the job, also in a process set."""
    tensor = tf.convert_to_tensor(tensor)
    return call(
        "horovod_broadcast", tensor, token(), root_rank=root_rank,
        **_named("HorovodBroadcast", [tensor], name, ignore_name_scope, _id_of(process_set)),
    )  # fmt: skip


def grouped_broadcast(
    tensors: Sequence[Any],
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """:func:`broadcast` of tensors that are done together."""
    how = {"root_rank": root_rank}
    return grouped(
        "HorovodGroupedBroadcast", _tensors_of(tensors), name, False, _id_of(process_set), how
    )


def broadcast_(
    variables: Sequence[Any],
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Overwrite variables by those of the root, together, and return their new values.

    Also variables that have no value yet, except on the root.
    """
    variables = list(variables)
    values = grouped_broadcast(
        [_value_of(variable) for variable in variables], root_rank, name, process_set
    )
    written = [assign(variable, value) for variable, value in zip(variables, values)]
    if is_eager():
        return values
    with tf.control_dependencies([one for one in written if one is not None]):
        return [tf.identity(value) for value in values]


def _value_of(variable: Any) -> Any:
    value = getattr(variable, "value", variable)
    return value() if callable(value) else tf.convert_to_tensor(value)


def assign(variable: Any, value: Any) -> Any:
    """Write to a variable of TensorFlow's or of Keras's; in a graph, an op that does it."""
    written = variable.assign(value)
    return (
        written if isinstance(written, (tf.Tensor, tf.Operation)) else getattr(written, "op", None)
    )


# ---- Without data -----------------------------------------------------------


def join() -> Any:
    """Promise that this rank submits no more; the op's result is who joined last."""
    last = call("horovod_join")
    if is_eager():
        _compare_again()  # a rank may take its first step only now
    return last


def barrier(process_set: ProcessSet = global_process_set, name: str | None = None) -> Any:
    """Wait for all ranks of the set; in a graph, an op that does it."""
    return call("horovod_barrier", name=name, process_set_id=_id_of(process_set))


def size_op(process_set_id: int = 0, name: str | None = None) -> Any:
    """The number of ranks of a process set, asked when the graph runs."""
    return call("horovod_size", process_set_id=process_set_id, name=name)


def local_size_op(name: str | None = None) -> Any:
    """The number of ranks of this host, asked when the graph runs."""
    return call("horovod_local_size", name=name)


def rank_op(name: str | None = None) -> Any:
    """This rank's number, asked when the graph runs."""
    return call("horovod_rank", name=name)


def local_rank_op(name: str | None = None) -> Any:
    """This rank's number among those of its host, asked when the graph runs."""
    return call("horovod_local_rank", name=name)


def process_set_included_op(process_set_id: int = 0, name: str | None = None) -> Any:
    """1 on the members of a process set and 0 on others, asked when the graph runs."""
    return call("horovod_process_set_included", process_set_id=process_set_id, name=name)


from . import gradients as _gradients  # noqa: E402,F401 -- registers them
