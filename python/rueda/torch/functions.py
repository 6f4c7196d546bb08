# SPDX-License-Identifier: Apache-2.0
"""Models and optimizers, the same on all ranks; objects are rueda.common.objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable, NamedTuple

import torch

from rueda.common.objects import allgather_object, broadcast_object
from rueda.common.process_sets import ProcessSet, global_process_set

from . import mpi_ops
from .tensors import DTYPES, new_sparse

__all__ = [
    "allgather_object",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
]


# ---- Parameters -------------------------------------------------------------


def broadcast_parameters(params: Any, root_rank: int) -> None:
    """Overwrite these tensors on all ranks by those of the root.

    ``params`` is ``model.state_dict()`` or another dict, ``model.named_parameters()``
    or another iterable of (name, tensor), or a list of tensors. What is no tensor
    is left alone. Ranks may list a dict's keys in different orders. A model's buffers, such
    as running statistics, are in its ``state_dict()`` only.

    :raises ValueError: this is not a collection of parameters.
    :raises HorovodInternalError: the root has other parameters, or a rank is lost.
    """
    handles = [
        mpi_ops.broadcast_async_(_as_known_type(tensor), root_rank, name)
        for name, tensor in _named_tensors(params)
        if isinstance(tensor, torch.Tensor)
    ]
    _wait(handles)


def _named_tensors(params: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(params, Mapping):
        yield from sorted(params.items())
        return
    if isinstance(params, (torch.Tensor, str)) or not isinstance(params, Iterable):
        raise ValueError(
            f"broadcast_parameters: a {type(params).__name__} is not a collection of parameters; "
            "give model.state_dict(), model.named_parameters() or a list of tensors"
        )
    for index, entry in enumerate(params):
        yield entry if isinstance(entry, tuple) else (f"parameter.{index}", entry)


_OF_BYTES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _as_known_type(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory, as numbers of a type that collectives know, where it is of another.

    Nothing is computed here, so complex numbers and the like can be sent, too.
    """
    if tensor.dtype in DTYPES or tensor.layout is not torch.strided or tensor.is_quantized:
        return tensor
    if tensor.is_complex() and not tensor.is_conj():
        return torch.view_as_real(tensor.detach())
    dtype = _OF_BYTES.get(tensor.element_size())
    return tensor if dtype is None or tensor.is_complex() else tensor.detach().view(dtype)


def _wait(handles: list[Any]) -> None:
    """Wait for all, also if one fails: the first failure is raised at the end."""
    failure = None
    for handle in handles:
        try:
            mpi_ops.synchronize(handle)
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure


# ---- State of optimizers ----------------------------------------------------


class _Place(NamedTuple):
    """Stands for a tensor in what is pickled."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    is_on_host: bool


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int, model: torch.nn.Module | None = None
) -> None:
    """Overwrite options and state of the optimizer by those of the root.

    The others need no state yet: they get what the root has, of whatever kind.
    Parameters that have no gradient are left with one of zeros where there was
    no state. ``model`` tells which of them have sparse gradients, where the
    optimizer alone does not. :class:`ValueError` for LBFGS, whose state cannot be sent.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("broadcast_optimizer_state: the state of LBFGS cannot be broadcast")
    if not optimizer.state:
        _leave_zero_grads(optimizer, model)
    _broadcast_state(optimizer, root_rank, global_process_set)


def broadcast_in_set(
    optimizer: torch.optim.Optimizer,
    named: Iterable[tuple[str, torch.Tensor]],
    process_set: ProcessSet,
) -> None:
    """Make these parameters and the optimizer's state those of the set's lowest rank."""
    root_rank = min(process_set.ranks or [0])
    _wait(
        [
            mpi_ops.broadcast_async_(
                _as_known_type(param), root_rank, f"optimizer.{name}", process_set
            )
            for name, param in named
        ]
    )
    if not isinstance(optimizer, torch.optim.LBFGS):
        _broadcast_state(optimizer, root_rank, process_set)


def _broadcast_state(
    optimizer: torch.optim.Optimizer, root_rank: int, process_set: ProcessSet
) -> None:
    params = [param for group in optimizer.param_groups for param in group["params"]]
    is_root = mpi_ops.rank() == root_rank
    tensors: list[torch.Tensor] = []
    outline = _outline(optimizer, params, tensors) if is_root else None
    outline = broadcast_object(outline, root_rank, "optimizer.outline", process_set)
    if not is_root:
        _adopt(optimizer, params, outline, tensors)
    _wait(
        [
            mpi_ops.broadcast_async_(
                _as_known_type(tensor), root_rank, f"optimizer.{index}", process_set
            )
            for index, tensor in enumerate(tensors)
        ]
    )


def _outline(
    optimizer: torch.optim.Optimizer, params: list[torch.Tensor], tensors: list[torch.Tensor]
) -> dict[str, Any]:
    """Options and state, with places instead of tensors; those are put into the list."""
    index_of = {id(param): index for index, param in enumerate(params)}

    def put(tensor: torch.Tensor, _param: Any) -> _Place:
        tensors.append(tensor)
        return _Place(tuple(tensor.shape), tensor.dtype, tensor.device.type == "cpu")

    return {
        "params": [len(group["params"]) for group in optimizer.param_groups],
        "options": [_replace(_options(g), torch.Tensor, put) for g in optimizer.param_groups],
        "state": [
            (index_of.get(id(key), key), _replace(value, torch.Tensor, put))
            for key, value in optimizer.state.items()
        ],
    }


def _adopt(
    optimizer: torch.optim.Optimizer,
    params: list[torch.Tensor],
    outline: dict[str, Any],
    tensors: list[torch.Tensor],
) -> None:
    """Take over the root's outline, with new tensors, which are put into the list."""
    mine = [len(group["params"]) for group in optimizer.param_groups]
    if mine != outline["params"]:
        raise ValueError(
            f"broadcast_optimizer_state: the groups have {mine} parameters on rank "
            f"{mpi_ops.rank()}, and {outline['params']} on the root"
        )

    def make(place: _Place, param: Any) -> torch.Tensor:
        is_on_host = place.is_on_host or param is None
        device = torch.device("cpu") if is_on_host else param.device
        tensors.append(torch.empty(place.shape, dtype=place.dtype, device=device))
        return tensors[-1]

    for group, options in zip(optimizer.param_groups, outline["options"]):
        first = group["params"][0] if group["params"] else None
        group.update(_replace(options, _Place, make, first))
    optimizer.state.clear()
    for key, value in outline["state"]:
        param = params[key] if isinstance(key, int) else None
        optimizer.state[key if param is None else param] = _replace(value, _Place, make, param)


def _options(group: dict[str, Any]) -> dict[str, Any]:
    return {key: group[key] for key in group if key not in ("params", "param_names")}


def _replace(
    value: Any, kind: type, by: Callable[[Any, Any], Any], param: torch.Tensor | None = None
) -> Any:
    """The value with every object of this kind, however deep, replaced."""
    if isinstance(value, kind):
        return by(value, param)
    if isinstance(value, dict):
        return {key: _replace(one, kind, by, param) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replace(one, kind, by, param) for one in value)
    return value


def _leave_zero_grads(optimizer: torch.optim.Optimizer, model: torch.nn.Module | None) -> None:
    sparse = {
        id(module.weight)
        for module in (model.modules() if model is not None else ())
        if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.sparse
    }
    all_sparse = isinstance(optimizer, torch.optim.SparseAdam)
    for group in optimizer.param_groups:
        for param in group["params"]:
            if not param.requires_grad or param.grad is not None:
                continue
            if all_sparse or id(param) in sparse:
                param.grad = empty_sparse_like(param)
            else:
                param.grad = torch.zeros_like(param)


def empty_sparse_like(param: torch.Tensor) -> torch.Tensor:
    """A sparse gradient of this parameter, as an embedding has it, without any row."""
    return new_sparse(
        torch.empty((1, 0), dtype=torch.int64, device=param.device),
        torch.empty((0, *param.shape[1:]), dtype=param.dtype, device=param.device),
        param.shape,
    )
