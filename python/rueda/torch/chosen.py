# SPDX-License-Identifier: Apache-2.0
"""Whether the gradients of an optimizer lie in shared memory (shared.py): one choice of all.

After the third step the ranks of the process set agree whether all of them can, and on one
order of the gradients, that of the lowest rank. With ``gradients="auto"`` they try both
ways with these gradients, a few times each, and take the faster one.

A rank that has called join() takes part as it does in any allreduce. After a join(), a
failure or an init() all begin again, with gradients of their own.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import time
from collections.abc import Sequence
from typing import Any

import torch

from rueda import _core
from rueda.common import agreement, handles
from rueda.common.operations import key_of, set_of
from rueda.common.process_sets import ProcessSet

from .gradients import Gradient
from .shared import SharedGradients

__all__ = ["WAYS", "MemoryChoice"]

#: What ``gradients=`` takes; None is private, too, and all ranks say so.
WAYS = (None, "auto", "shared", "private")

_DECIDES_AFTER = 3  # steps
_ROUNDS = 3
#: Shared memory has to be faster by this much.
_MARGIN = 0.95
_PRIVATE, _TRY, _SHARED = range(3)
_NEVER = 1 << 30


class MemoryChoice:
    """What the ranks have chosen for one optimizer."""

    def __init__(self, way: str | None, process_set: ProcessSet) -> None:
        self._wish = {"auto": _TRY, "shared": _SHARED}.get(way or "", _PRIVATE)
        self._is_asked = way is not None
        self._set = process_set
        self._steps_left = _DECIDES_AFTER
        self._reducers: list[Any] = []
        agreement.follow(self)
        handles.holders.add(self)

    def forget(self) -> None:
        """Begin again, as all other ranks do."""
        self._steps_left = _DECIDES_AFTER
        for reducer in self._reducers:
            reducer.unshare()
        self._reducers.clear()

    def note_step(self, reducer: Any) -> None:
        """A step has ended; its gradients are reduced, and nothing is in flight."""
        self._steps_left -= 1
        if self._steps_left != 0:
            return
        self._steps_left = _NEVER
        if not self._is_asked or _core.size() == 1:
            return
        if _core.local_size() != _core.size():  # on every rank
            _say("the ranks are on several hosts")
            return
        why = self._obstacle(reducer)
        gradients, is_wished = self._agree(reducer, why)
        if not gradients:
            _say(why or "another rank cannot, or has other parameters")
            return
        shared = self._make(reducer, gradients)
        if shared is None or not (is_wished or self._is_faster(reducer, shared)):
            return
        if is_wished:
            _core.log_debug('gradients lie in shared memory: gradients="shared"')
        reducer.share(shared)
        self._reducers.append(reducer)

    # ---- Can it be? -----------------------------------------------------------

    def _obstacle(self, reducer: Any) -> str | None:
        """Why gradients of this rank cannot be shared, or None."""
        if self._wish == _PRIVATE:
            return 'gradients="private"'
        if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
            return "torch is older than 2.1"
        if os.environ.get("RUEDA_REPAIR") == "1":
            return "RUEDA_REPAIR=1 keeps what ranks give until it is delivered"
        if os.environ.get("HOROVOD_ELASTIC") == "1":
            return "the memory of an elastic job changes with its members"
        settings = reducer.settings
        if not settings.is_plain or settings.reduction is None:
            return "gradients are compressed, or not added up"
        odd = next((one for one in reducer.gradients if not _is_plain(one)), None)
        if odd is not None:
            return f'the gradient of "{odd.name}" is sparse, grouped or has gaps'
        return None

    def _make(self, reducer: Any, gradients: Sequence[Gradient]) -> SharedGradients | None:
        """On all ranks, or on none."""
        made, why = None, "another rank has no memory for them"
        try:
            made = SharedGradients(reducer.settings, gradients)
        except (RuntimeError, OSError, ValueError) as error:
            why = f"there is no memory for them: {error}"
        (have_all,) = self._allreduce([int(made is not None)], _core.REDUCTION_MIN, "memory.made")
        if have_all:
            return made
        _say(why)
        return None

    def _agree(self, reducer: Any, why: str | None) -> tuple[list[Gradient], bool]:
        """The gradients in one order, or none; and whether no trial is needed."""
        by_name = {one.name: one for one in reducer.gradients}
        names = sorted(by_name)
        text = "\0".join(f"{n} {tuple(by_name[n].param.shape)} {by_name[n].param.dtype}"
                         for n in names)  # fmt: skip
        digest = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
        can = why is None and bool(names)
        mine = [int(can), self._wish, digest, ~digest, _core.rank()]
        can_all, wish, least, most, leader = self._allreduce(mine, _core.REDUCTION_MIN, "memory")
        if not can_all or least != ~most:
            return [], False
        came = sorted(reducer.gradients, key=lambda one: one.came_ns)
        places = {gradient.name: place for place, gradient in enumerate(came)}
        own = [places[name] if leader == _core.rank() else 0 for name in names]
        order = self._allreduce(own, _core.REDUCTION_SUM, "memory.order")
        ordered = [name for _, name in sorted(zip(order, names))]
        return [by_name[name] for name in ordered], wish == _SHARED

    def _allreduce(self, numbers: Sequence[int], reduction: int, label: str) -> list[int]:
        room = (ctypes.c_int64 * len(numbers))(*numbers)
        place = ctypes.addressof(room)
        core = _core.submit(
            _core.KIND_ALLREDUCE, key_of("check", label), set_of(self._set), _core.DTYPE_INT64,
            place, place, (len(numbers),), reduction,
        )  # fmt: skip
        _core.wait(core)
        return list(room)

    # ---- Which is faster? -------------------------------------------------------

    def _is_faster(self, reducer: Any, shared: SharedGradients) -> bool:
        """Reduce copies of the gradients in both ways; all ranks get the same answer."""
        params = [gradient.param for gradient in shared.gradients]
        kept = [param.grad for param in params]
        private_us = shared_us = _NEVER
        for _ in range(_ROUNDS):
            fresh = [torch.zeros_like(param) for param in params]
            for param, grad in zip(params, fresh):
                param.grad = grad
            private_us = min(private_us, _time(_reduce_privately, reducer, shared))
            for param in params:
                param.grad = None
            shared.zero()
            shared_us = min(shared_us, _time(_reduce_shared, shared, fresh))
        for param, grad in zip(params, kept):
            param.grad = grad
        private_us, shared_us = self._allreduce(
            [private_us, shared_us], _core.REDUCTION_MAX, "memory.times"
        )
        is_faster = shared_us < _MARGIN * private_us
        _core.log_debug(
            f"gradients lie in {'shared' if is_faster else 'private'} memory: a step takes "
            f"{shared_us} us there and {private_us} us in private memory"
        )
        return is_faster


def _reduce_privately(reducer: Any, shared: SharedGradients) -> None:
    for gradient in shared.gradients:
        gradient.passes_left = 1
        gradient(gradient.param)
    failure = _core.settle(reducer.fast_sent, reducer.settings.passes, [])
    reducer.fast_sent.clear()
    if failure is not None:
        raise failure


def _reduce_shared(shared: SharedGradients, fresh: Sequence[torch.Tensor]) -> None:
    """With what autograd does: it adds to what is there, or leaves its own."""
    for gradient, grad in zip(shared.gradients, fresh):
        param = gradient.param
        if param.grad is None:
            param.grad = grad
        else:
            param.grad.add_(grad)
    failure, _ = shared.finish()
    if failure is not None:
        raise failure


def _time(work: Any, *args: Any) -> int:
    began = time.perf_counter()
    work(*args)
    return round(1e6 * (time.perf_counter() - began))


def _is_plain(gradient: Gradient) -> bool:
    param = gradient.param
    return (
        gradient.is_fast
        and not gradient.was_sparse
        and gradient.group is None
        and param.is_contiguous()
        and param.numel() > 0
    )


def _say(why: str) -> None:
    _core.log_debug(f"gradients lie in private memory: {why}")
