# SPDX-License-Identifier: Apache-2.0
"""Collectives on tensors: at once or with a handle, in place, in groups.

Ranks match operations by name; those without a name by their order. Every
function takes a ``process_set``, and reductions take factors by which inputs and
results are multiplied. Results of functions that return tensors, but for those
in place, can be differentiated.

Wrong arguments are refused at once, before anything is sent. Ranks that do not
agree, or that are lost, are an error on all ranks, raised by the function that waits:
the one without ``_async``, or :func:`synchronize`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Callable

import torch

from rueda.common import life
from rueda.common.agreement import begin_again as _compare_again
from rueda.common.basics import basics as _basics  # noqa: F401 -- Horovod's tests look here
from rueda.common.handles import poll, synchronize
from rueda.common.life import *  # noqa: F403
from rueda.common.life import Average, ProcessSet, global_process_set
from rueda.common.util import handle_average_backwards_compatibility

from . import autograd, submit
from .compression import Compression
from .sparse import sparse_allreduce_async

__all__ = [
    *life.__all__,
    "allgather", "allgather_async", "allreduce", "allreduce_", "allreduce_async",
    "allreduce_async_", "alltoall", "alltoall_async", "barrier", "broadcast", "broadcast_",
    "broadcast_async", "broadcast_async_", "grouped_allgather", "grouped_allgather_async",
    "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async",
    "grouped_allreduce_async_", "grouped_reducescatter", "grouped_reducescatter_async", "join",
    "poll", "reducescatter", "reducescatter_async", "sparse_allreduce_async", "synchronize",
]  # fmt: skip

Tensor = torch.Tensor

# ---- What arguments mean ----------------------------------------------------


_op_of = handle_average_backwards_compatibility


def _needs_gradient(tensors: Sequence[Tensor]) -> bool:
    return torch.is_grad_enabled() and any(
        isinstance(tensor, Tensor) and tensor.requires_grad for tensor in tensors
    )


def _compressed(
    compression: Any, tensors: Iterable[Tensor], reduce: Callable[[list[Tensor]], Any]
) -> list[Tensor]:
    """The results of a reduction that works on what a compressor makes of the tensors."""
    pairs = [compression.compress(tensor) for tensor in tensors]
    results = reduce([tensor for tensor, _ in pairs])
    return [compression.decompress(one, context) for one, (_, context) in zip(results, pairs)]


# ---- Allreduce --------------------------------------------------------------


def allreduce_async_(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Begin to reduce the tensor over all ranks, in place; by default to the average.

    Returns a handle for :func:`synchronize`. Do not read or write the tensor until then.
    """
    return submit.allreduce(
        tensor, True, name, _op_of(op, average), prescale_factor, postscale_factor, process_set
    )


def allreduce_(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Reduce the tensor over all ranks, in place; by default to the average.

    Returns the same tensor. It raises what :func:`allreduce` raises; what the tensor holds
    then is undefined.
    """
    return synchronize(
        submit.allreduce(
            tensor, True, name, _op_of(op, average), prescale_factor, postscale_factor, process_set
        )
    )


def allreduce_async(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Begin to reduce the tensor over all ranks; by default to the average.

    Returns a handle for :func:`synchronize`, which returns a new tensor. Do not write
    the input until then.
    """
    return submit.allreduce(
        tensor, False, name, _op_of(op, average), prescale_factor, postscale_factor, process_set
    )


def allreduce(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Return the reduction of the tensor over all ranks: by default the average.

    An average of integers is cut towards zero. All ranks give tensors of one shape and type.

    :param average: the old way to say ``op``: True is Average, False is Sum.
    :param name: matches the operation with those of the other ranks. Without a name, ranks
        match operations by the order in which they are submitted.
    :param compression: makes the tensor smaller before it is sent, such as
        ``Compression.fp16``.
    :param op: Average, Sum, Min, Max, Product or Adasum.
    :param prescale_factor: multiplies the tensor before the reduction.
    :param postscale_factor: multiplies the result.
    :param process_set: reduce among these ranks only.
    :raises ValueError: an argument is wrong, the type cannot be reduced, the name is in use,
        or there is no job (:class:`~rueda.common.exceptions.NotInitializedError`).
    :raises NotImplementedError: this reduction cannot be done, such as Adasum in a process set.
    :raises HorovodInternalError: ranks do not agree, or one of them is lost; the message says
        which, and what differs.
    """
    how = (_op_of(op, average), prescale_factor, postscale_factor, process_set)
    if compression is Compression.none:
        return _allreduce(tensor, name, how)
    return _compressed(compression, [tensor], lambda sent: [_allreduce(sent[0], name, how)])[0]


def _allreduce(tensor: Tensor, name: str | None, how: tuple[Any, ...]) -> Tensor:
    if _needs_gradient([tensor]):
        return autograd.Allreduce.apply(tensor, name, *how)
    return synchronize(submit.allreduce(tensor, False, name, *how))


def grouped_allreduce_async_(
    tensors: Iterable[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Begin to reduce tensors, in place, when all of them are there on all ranks.

    By default to averages. Returns one handle for all of them.
    """
    how = (_op_of(op, average), prescale_factor, postscale_factor, process_set)
    return submit.grouped_allreduce(tensors, True, name, *how)


def grouped_allreduce_(
    tensors: Iterable[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """Reduce tensors together, in place; by default to averages. Returns the same tensors."""
    how = (_op_of(op, average), prescale_factor, postscale_factor, process_set)
    return list(synchronize(submit.grouped_allreduce(tensors, True, name, *how)))


def grouped_allreduce_async(
    tensors: Iterable[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Begin to reduce tensors when all of them are there on all ranks.

    By default to averages. Returns one handle, whose result is a list.
    """
    how = (_op_of(op, average), prescale_factor, postscale_factor, process_set)
    return submit.grouped_allreduce(tensors, False, name, *how)


def grouped_allreduce(
    tensors: Iterable[Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """Return the reductions of tensors, by default averages, which are done together.

    Arguments and errors are those of :func:`allreduce`.
    """
    how = (_op_of(op, average), prescale_factor, postscale_factor, process_set)
    if compression is Compression.none:
        return _grouped_allreduce(tensors, name, how)
    return _compressed(compression, tensors, lambda sent: _grouped_allreduce(sent, name, how))


def _grouped_allreduce(
    tensors: Iterable[Tensor], name: str | None, how: tuple[Any, ...]
) -> list[Tensor]:
    tensors = tuple(tensors)  # it may be a generator
    if _needs_gradient(tensors):
        return list(autograd.GroupedAllreduce.apply(name, how, *tensors))
    return list(synchronize(submit.grouped_allreduce(tensors, False, name, *how)))


# ---- Allgather --------------------------------------------------------------


def allgather_async(
    tensor: Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Begin to put the rows of all ranks one after another; returns a handle."""
    return submit.allgather(tensor, name, process_set)


def allgather(
    tensor: Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Tensor:
    """Return the rows of all ranks, one after another in the order of ranks.

    Ranks may have different numbers of rows; the other dimensions are equal, otherwise
    :class:`HorovodInternalError` says on all ranks which two differ.
    """
    if _needs_gradient([tensor]):
        return autograd.Allgather.apply(tensor, name, process_set)
    return synchronize(submit.allgather(tensor, name, process_set))


def grouped_allgather_async(
    tensors: Iterable[Tensor],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Begin to gather tensors when all of them are there on all ranks."""
    return submit.grouped_allgather(tensors, name, process_set)


def grouped_allgather(
    tensors: Iterable[Tensor],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """:func:`allgather` of tensors that are done together."""
    tensors = tuple(tensors)
    if _needs_gradient(tensors):
        return list(autograd.GroupedAllgather.apply(name, process_set, *tensors))
    return list(synchronize(submit.grouped_allgather(tensors, name, process_set)))


# ---- Broadcast --------------------------------------------------------------


def broadcast_async(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Begin to bring the root's tensor here; returns a handle."""
    return submit.broadcast(tensor, False, root_rank, name, process_set)


def broadcast(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Return the tensor of the root.

    ``root_rank`` is a rank of the job, also in a process set. All ranks give a tensor of
    the root's shape and type; what it holds matters on the root only.
    """
    if _needs_gradient([tensor]):
        return autograd.Broadcast.apply(tensor, root_rank, name, process_set)
    return synchronize(submit.broadcast(tensor, False, root_rank, name, process_set))


def broadcast_async_(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Begin to overwrite the tensor with the root's; returns a handle."""
    return submit.broadcast(tensor, True, root_rank, name, process_set)


def broadcast_(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Overwrite the tensor with the root's, and return it; otherwise as :func:`broadcast`."""
    return synchronize(submit.broadcast(tensor, True, root_rank, name, process_set))


# ---- Alltoall ---------------------------------------------------------------


def alltoall_async(
    tensor: Tensor,
    splits: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Begin an :func:`alltoall`; its result is always a pair."""
    return submit.alltoall(tensor, splits, name, process_set)


def alltoall(
    tensor: Tensor,
    splits: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Send rows to all ranks, and return what comes, in the order of ranks.

    ``splits`` says how many rows go to each rank; the result is then a pair of
    the rows and how many came from each. Without it all get as many.

    :class:`ValueError` if the splits are more than the rows, or if without splits the rows
    cannot be shared equally.
    """
    if _needs_gradient([tensor]):
        pair = autograd.Alltoall.apply(tensor, splits, name, process_set)
    else:
        pair = synchronize(submit.alltoall(tensor, splits, name, process_set))
    return pair[0] if splits is None else pair


# ---- Reducescatter ----------------------------------------------------------


def reducescatter_async(
    tensor: Tensor,
    name: str | None = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Begin a :func:`reducescatter`; returns a handle."""
    return submit.reducescatter(tensor, name, op, prescale_factor, postscale_factor, process_set)


def reducescatter(
    tensor: Tensor,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Tensor:
    """Return my rows of the reduction of the tensor over all ranks: by default the average.

    ``op`` is Average or Sum; another one raises :class:`NotImplementedError`.

    Rows are shared equally; if that does not work out the lowest ranks have one
    more.
    """
    how = (op, prescale_factor, postscale_factor, process_set)
    if compression is Compression.none:
        return _reducescatter(tensor, name, how)
    return _compressed(compression, [tensor], lambda sent: [_reducescatter(sent[0], name, how)])[0]


def _reducescatter(tensor: Tensor, name: str | None, how: tuple[Any, ...]) -> Tensor:
    if _needs_gradient([tensor]):
        return autograd.Reducescatter.apply(tensor, name, *how)
    return synchronize(submit.reducescatter(tensor, name, *how))


def grouped_reducescatter_async(
    tensors: Iterable[Tensor],
    name: str | None = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Begin a :func:`grouped_reducescatter`; returns a handle."""
    how = (op, prescale_factor, postscale_factor, process_set)
    return submit.grouped_reducescatter(tensors, name, *how)


def grouped_reducescatter(
    tensors: Iterable[Tensor],
    name: str | None = None,
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Tensor]:
    """:func:`reducescatter` of tensors that are done together."""
    how = (op, prescale_factor, postscale_factor, process_set)
    if compression is Compression.none:
        return _grouped_reducescatter(tensors, name, how)
    return _compressed(compression, tensors, lambda sent: _grouped_reducescatter(sent, name, how))


def _grouped_reducescatter(
    tensors: Iterable[Tensor], name: str | None, how: tuple[Any, ...]
) -> list[Tensor]:
    tensors = tuple(tensors)
    if _needs_gradient(tensors):
        return list(autograd.GroupedReducescatter.apply(name, how, *tensors))
    return list(synchronize(submit.grouped_reducescatter(tensors, name, *how)))


# ---- Without data -----------------------------------------------------------


def join(device: int = -1) -> int:
    """Say that this rank has no more data, and wait until all have said so.

    Meanwhile the others' reductions go on as if nothing came from here, but
    averages divide by all ranks. Other collectives, such as a broadcast, raise
    :class:`HorovodInternalError` on the ranks that still have data. Returns the rank that
    joined last. ``device`` has no effect.
    """
    last = synchronize(submit.join())
    _compare_again()  # a rank may take its first step only now
    return last


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait until all ranks of the process set have come here.

    :class:`HorovodInternalError` if one of them is lost before.
    """
    synchronize(submit.barrier(process_set))


def __getattr__(name: str) -> Any:
    """Horovod's half-public names, loaded on first use."""
    from .mpi_names import NAMES

    if name in NAMES:
        return NAMES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
