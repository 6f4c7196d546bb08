# SPDX-License-Identifier: Apache-2.0
"""Collectives on arrays of numpy, for values that no framework's own binding takes.

Results are new arrays; inputs stay as they are. Numpy is imported on first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rueda import _core

from . import handles
from .agreement import digest_of_parts
from .basics import Average, Sum
from .objects import allgather_object
from .operations import REDUCTIONS, key_of, keys_of, reduction_of, rows_of_share, set_of
from .process_sets import ProcessSet, global_process_set

__all__ = ["allgather", "allreduce", "broadcast", "digest_of", "reducescatter"]


_PREFIX = "DTYPE_"

#: The library's number of each type, by numpy's name.
_DTYPES = {
    name[len(_PREFIX) :].lower(): getattr(_core, name)
    for name in dir(_core)
    if name.startswith(_PREFIX)
}


def _in_rows(value: Any) -> Any:
    """Return an array whose numbers lie row after row: the value itself or a copy."""
    import numpy

    return numpy.asarray(value, order="C")


def _dtype_of(array: Any, name: str | None) -> int:
    """Return the library's number of the type, or raise :class:`ValueError`."""
    dtype = _DTYPES.get(array.dtype.name)
    if dtype is None:
        what = "" if name is None else f'"{name}": '
        raise ValueError(
            f"{what}an array of type {array.dtype} is not supported; convert it, for example to "
            "float32"
        )
    return dtype


def allreduce(
    values: Sequence[Any],
    names: Sequence[str | None],
    op: int = Average,
    prescale: float = 1.0,
    postscale: float = 1.0,
    process_set: ProcessSet = global_process_set,
    parts: Sequence[Sequence[int]] = (),
) -> list[Any]:
    """Reduce arrays, each by its name. Those of a part (places in the list) go together."""
    import numpy

    sources = [_in_rows(value) for value in values]
    targets = [numpy.empty_like(source) for source in sources]
    how = (reduction_of(op, process_set), 0, prescale, postscale)
    number = set_of(process_set)

    def order(i: int, key: str | None) -> tuple[Any, ...]:
        source, target = sources[i], targets[i]
        return (
            _core.KIND_ALLREDUCE, key, number, _dtype_of(source, names[i]), source.ctypes.data,
            target.ctypes.data, source.shape, *how,
        )  # fmt: skip

    cores: list[int] = []
    together = {i for part in parts for i in part}
    for part in parts:
        keys = keys_of("grouped_allreduce", names[part[0]], len(part))
        cores += _core.submit_group([order(i, key) for i, key in zip(part, keys)])
    for i, name in enumerate(names):
        if i not in together:
            cores.append(_core.submit(*order(i, key_of("allreduce", name))))
    return handles.synchronize(handles.add(cores, targets, sources))


def broadcast(
    values: Sequence[Any],
    names: Sequence[str | None],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Return the root's arrays, which have the same types and shapes on all ranks."""
    import numpy

    sources = [_in_rows(value) for value in values]
    targets = [numpy.empty_like(source) for source in sources]
    cores = []
    for name, source, target in zip(names, sources, targets):
        dtype, shape = _DTYPES.get(source.dtype.name), source.shape
        if dtype is None:  # nothing is computed, so bytes will do
            dtype, shape = _core.DTYPE_UINT8, (source.nbytes,)
        cores.append(
            _core.submit(
                _core.KIND_BROADCAST, key_of("broadcast", name), set_of(process_set), dtype,
                source.ctypes.data, target.ctypes.data, shape, root=root_rank,
            )
        )  # fmt: skip
    return handles.synchronize(handles.add(cores, targets, sources))


def allgather(
    value: Any, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Put the arrays of all ranks one after another; they may differ in their first length."""
    import numpy

    return numpy.concatenate(allgather_object(_in_rows(value), name, process_set))


def reducescatter(
    value: Any,
    name: str | None = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Reduce an array and return this rank's rows of the result."""
    import numpy

    if op not in (Average, Sum):
        raise NotImplementedError("reducescatter is done by Average or Sum")
    source = _in_rows(value)
    if source.ndim == 0:
        raise ValueError("reducescatter takes an array with rows, not a single number")
    rows = rows_of_share(source.shape[0], process_set)
    target = numpy.empty((rows, *source.shape[1:]), source.dtype)
    core = _core.submit(
        _core.KIND_REDUCE_SCATTER, key_of("reducescatter", name), set_of(process_set),
        _dtype_of(source, name), source.ctypes.data, target.ctypes.data, source.shape,
        REDUCTIONS[op],
    )  # fmt: skip
    return handles.synchronize(handles.add((core,), target, source))


def digest_of(value: Any) -> int:
    """Hash type, shape and values of an array, for :class:`rueda.common.agreement.Agreement`."""
    array = _in_rows(value)
    return digest_of_parts(f"{array.dtype} {array.shape}", [(array.ctypes.data, array.nbytes)])
