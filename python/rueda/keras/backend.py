# SPDX-License-Identifier: Apache-2.0
"""The one place that knows Keras's back ends.

``reduce`` takes what a step's gradients are on the back end (tensors of torch, of
TensorFlow, or arrays of JAX, also while a graph is being traced) and returns them reduced
over the ranks. Everything else here moves values between variables and arrays of numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rueda import _core
from rueda.common import arrays
from rueda.common.agreement import Agreement
from rueda.common.process_sets import ProcessSet

from .flavor import IS_LEGACY, back_end, keras

__all__ = [
    "Check",
    "How",
    "as_dense",
    "as_it_is",
    "assign",
    "is_sparse",
    "reduce",
    "times",
    "to_numpy",
    "value_of",
]


class How(NamedTuple):
    """How tensors are reduced."""

    op: int
    prescale: float
    postscale: float
    process_set: ProcessSet


class Check(NamedTuple):
    """Whether ranks have the same parameters; see rueda.common.agreement."""

    agreement: Agreement
    values: Sequence[Any]  # the parameters before the step, as the back end has them
    compare: Callable[..., None]  # takes arrays of numpy


Parts = Sequence[Sequence[int]]


# ---- Values -----------------------------------------------------------------


def to_numpy(value: Any) -> Any:
    """Return a variable's or a tensor's value as an array on the host."""
    if IS_LEGACY:
        return value.numpy()
    return keras.ops.convert_to_numpy(value)


def value_of(variable: Any) -> Any:
    """Return what the back end has for a variable; while a graph is traced, a part of it."""
    return variable if IS_LEGACY else getattr(variable, "value", variable)


def assign(variable: Any, value: Any) -> None:
    """Give a variable this value."""
    if hasattr(variable, "assign"):
        variable.assign(value)
    else:
        keras.backend.set_value(variable, value)


def is_sparse(tensor: Any) -> bool:
    """Is this a ``tf.IndexedSlices``? No other back end has sparse gradients."""
    return hasattr(tensor, "dense_shape")


def as_dense(tensor: Any) -> Any:
    if not is_sparse(tensor):
        return tensor
    import tensorflow

    return tensorflow.convert_to_tensor(tensor)


def times(tensor: Any, scale: float) -> Any:
    if not is_sparse(tensor):
        return tensor * scale
    import tensorflow

    return tensorflow.math.scalar_mul(scale, tensor)


def as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method that TensorFlow must not translate when it is traced."""
    if back_end() != "tensorflow":
        return function
    import tensorflow

    return tensorflow.autograph.experimental.do_not_convert(function)


# ---- Gradients --------------------------------------------------------------


def reduce(
    tensors: Sequence[Any], names: Sequence[str], parts: Parts, how: How, check: Check | None
) -> list[Any]:
    """Return the tensors reduced over all ranks; ``parts`` are those that go together.

    With ``check``, compare parameters in the steps in which that is due.
    """
    kind = back_end()
    if kind == "torch":
        return _reduce_in_torch(tensors, names, parts, how, check)
    if kind == "jax":
        return _reduce_in_jax(tensors, names, parts, how, check)
    if kind == "tensorflow":
        return _reduce_in_tensorflow(tensors, names, parts, how, check)
    raise NotImplementedError(
        f"rueda.keras does not know the back end {kind!r} of Keras; set KERAS_BACKEND to "
        "tensorflow, torch or jax"
    )


def _split(count: int, parts: Parts) -> tuple[list[int], list[list[int]]]:
    """Return the places that are in no part, and the parts."""
    together = {place for part in parts for place in part}
    return [place for place in range(count) if place not in together], [list(p) for p in parts]


def _compare_now(check: Check | None) -> None:
    """The step runs in Python: compare if it is time to."""
    if check is not None and check.agreement.is_due():
        check.compare(*(to_numpy(value) for value in check.values))


# ---- PyTorch ----------------------------------------------------------------


def _reduce_in_torch(
    tensors: Sequence[Any], names: Sequence[str], parts: Parts, how: How, check: Check | None
) -> list[Any]:
    import torch

    # A compiled train_step() leaves its graph for this.
    return torch.compiler.disable(_reduce_eagerly_in_torch)(tensors, names, parts, how, check)


def _reduce_eagerly_in_torch(
    tensors: Sequence[Any], names: Sequence[str], parts: Parts, how: How, check: Check | None
) -> list[Any]:
    import torch

    from rueda.torch import mpi_ops

    alone, together = _split(len(tensors), parts)
    results = list(tensors)
    with torch.no_grad():
        _compare_now(check)
        groups = [
            mpi_ops.grouped_allreduce_async([tensors[i] for i in part], None, names[part[0]], *how)
            for part in together
        ]
        handles = [mpi_ops.allreduce_async(tensors[i], None, names[i], *how) for i in alone]
        for i, handle in zip(alone, handles):
            results[i] = mpi_ops.synchronize(handle)
        for part, handle in zip(together, groups):
            for i, result in zip(part, mpi_ops.synchronize(handle)):
                results[i] = result
    return results


# ---- JAX --------------------------------------------------------------------


def _reduce_in_jax(
    tensors: Sequence[Any], names: Sequence[str], parts: Parts, how: How, check: Check | None
) -> list[Any]:
    """Call back to the host from a compiled step; at once in one that is not compiled."""
    import jax

    if keras.distribution.distribution() is not None:
        raise NotImplementedError(
            "rueda.keras with JAX takes one device for each process; unset "
            "keras.distribution and start one rank for each device"
        )

    def on_host(*values: Any) -> list[Any]:
        return arrays.allreduce(values, names, *how, parts=parts)

    if not any(isinstance(tensor, jax.core.Tracer) for tensor in tensors):
        _compare_now(check)
        return [jax.numpy.asarray(value) for value in on_host(*tensors)]

    from jax.experimental import io_callback

    shapes = [jax.ShapeDtypeStruct(tensor.shape, tensor.dtype) for tensor in tensors]
    if check is None or _core.check_every() == 0:
        return io_callback(on_host, shapes, *tensors)

    def on_host_and_ask(*values: Any) -> tuple[list[Any], Any]:
        import numpy

        return on_host(*values), numpy.bool_(check.agreement.is_due())

    shape_of_flag = jax.ShapeDtypeStruct((), jax.numpy.bool_)
    results, is_due = io_callback(on_host_and_ask, (shapes, shape_of_flag), *tensors)
    jax.lax.cond(
        is_due,
        lambda *values: io_callback(check.compare, None, *values),
        lambda *values: None,
        *(jax.numpy.asarray(value) for value in check.values),
    )
    return results


# ---- TensorFlow -------------------------------------------------------------


def _reduce_in_tensorflow(
    tensors: Sequence[Any], names: Sequence[str], parts: Parts, how: How, check: Check | None
) -> list[Any]:
    import rueda.tensorflow as ops
    from rueda.tensorflow import library

    _compare_in_tensorflow(check)
    keywords = {
        "op": how.op,
        "prescale_factor": how.prescale,
        "postscale_factor": how.postscale,
        "process_set": how.process_set,
    }
    results = list(tensors)
    alone, together = _split(len(results), parts)
    if library.is_eager() or library.blocks:
        # Each operation waits for its end here: one for all takes less time.
        together, alone = [*together, *([alone] if alone else [])], []
    for part in together:
        reduced = ops.grouped_allreduce(
            [results[i] for i in part], name=names[part[0]], ignore_name_scope=True, **keywords
        )
        for i, tensor in zip(part, reduced):
            results[i] = tensor
    for i in alone:
        results[i] = ops.allreduce(results[i], name=names[i], ignore_name_scope=True, **keywords)
    return results


def _compare_in_tensorflow(check: Check | None) -> None:
    """Compare now, or put the comparison of later steps into the graph."""
    import tensorflow

    if check is None:
        return
    if tensorflow.executing_eagerly():
        _compare_now(check)
        return
    if _core.check_every() > 0:
        tensorflow.py_function(
            lambda *values: _compare_now(check._replace(values=values)), list(check.values), []
        )
        return
    with tensorflow.init_scope():
        # The graph is traced before its first step, when the parameters have values.
        if tensorflow.executing_eagerly():
            _compare_now(check)
