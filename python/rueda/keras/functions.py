# SPDX-License-Identifier: Apache-2.0
"""Collectives on values, and models that are loaded or made the same on all ranks.

A value is a number, a list, an array or a tensor of the back end; a tensor gives a tensor,
anything else an array of numpy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rueda.common import arrays
from rueda.common.basics import Average
from rueda.common.process_sets import ProcessSet, global_process_set
from rueda.common.util import handle_average_backwards_compatibility

from . import backend
from .compression import Compression
from .flavor import IS_LEGACY, keras
from .optimizer import distribute, reducer_of
from .options import Options

__all__ = [
    "allgather",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "broadcast_variables",
    "load_model",
    "reducescatter",
]


def _is_tensor(value: Any) -> bool:
    if IS_LEGACY:
        import tensorflow

        return bool(tensorflow.is_tensor(value))
    return keras.ops.is_tensor(value) or isinstance(value, keras.Variable)


def _as_array(value: Any) -> Any:
    import numpy

    return backend.to_numpy(value) if _is_tensor(value) else numpy.asarray(value)


def _like(value: Any, array: Any) -> Any:
    if not _is_tensor(value):
        return array
    if IS_LEGACY:
        import tensorflow

        return tensorflow.convert_to_tensor(array)
    return keras.ops.convert_to_tensor(array)


def allreduce(
    value: Any,
    name: str | None = None,
    average: bool | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: int | None = None,
    compression: Any = Compression.none,
) -> Any:
    """Return the average of the values of all ranks, or what ``op`` makes of them."""
    op = handle_average_backwards_compatibility(op, average)
    if compression is not Compression.none:
        packed, context = compression.compress(_like_tensor(value))
        reduced = arrays.allreduce(
            [_as_array(packed)], [name], op, prescale_factor, postscale_factor
        )
        result = compression.decompress(_like(packed, reduced[0]), context)
        return result if _is_tensor(value) else backend.to_numpy(result)
    reduced = arrays.allreduce([_as_array(value)], [name], op, prescale_factor, postscale_factor)
    return _like(value, reduced[0])


def _like_tensor(value: Any) -> Any:
    if _is_tensor(value):
        return value
    import numpy

    if IS_LEGACY:
        import tensorflow

        return tensorflow.convert_to_tensor(numpy.asarray(value))
    return keras.ops.convert_to_tensor(numpy.asarray(value))


def allgather(value: Any, name: str | None = None) -> Any:
    """Return the values of all ranks one after another; first lengths may differ."""
    return _like(value, arrays.allgather(_as_array(value), name))


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    """Return the root's value."""
    return _like(value, arrays.broadcast([_as_array(value)], [name], root_rank)[0])


def reducescatter(value: Any, name: str | None = None, op: int = Average) -> Any:
    """Return this rank's rows of the average (or sum) of the values of all ranks."""
    return _like(value, arrays.reducescatter(_as_array(value), name, op))


# ---- Variables --------------------------------------------------------------


def shared_variables(model: Any) -> list[Any]:
    """Return a model's variables but for the states of random generators.

    Ranks should not drop out the same units.
    """
    return [one for one in model.variables if not one.name.startswith("seed_generator_state")]


def broadcast_variables(
    variables: Iterable[Any],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
    label: str = "variables",
) -> None:
    """Overwrite variables by the root's; all ranks list them in the same order."""
    wanted = list(variables)
    if process_set.included() is False or not wanted:
        return
    names = [f"keras.{label}.{i}" for i in range(len(wanted))]
    values = [backend.to_numpy(variable) for variable in wanted]
    for variable, value in zip(wanted, arrays.broadcast(values, names, root_rank, process_set)):
        backend.assign(variable, value)


def broadcast_global_variables(root_rank: int) -> None:
    """Horovod's function for graphs of TensorFlow 1, in which a graph knows its variables."""
    raise RuntimeError(
        "hvd.broadcast_global_variables() is for graphs of TensorFlow 1. Use "
        "hvd.callbacks.BroadcastGlobalVariablesCallback(0), or "
        f"hvd.broadcast_variables(model.variables, root_rank={root_rank})"
    )


# ---- Models from files ------------------------------------------------------


def load_model(
    filepath: Any,
    custom_optimizers: Iterable[type] | None = None,
    custom_objects: dict[str, Any] | None = None,
    compression: Any = Compression.none,
    legacy_opts: bool = False,
    **options: Any,
) -> Any:
    """Load a model as ``keras.models.load_model`` does, and distribute its optimizer.

    The optimizer's state is that of the file. ``custom_optimizers`` are classes that it may
    be of; ``options`` are arguments of :func:`DistributedOptimizer`, such as ``op`` or
    ``process_set``. ``legacy_opts`` is accepted and not needed.
    """
    known = {kind.__name__: kind for kind in custom_optimizers or ()}
    model = keras.models.load_model(filepath, custom_objects={**known, **(custom_objects or {})})
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and reducer_of(optimizer) is None:
        model.optimizer = distribute(optimizer, Options(compression=compression, **options))
    return model
