# SPDX-License-Identifier: Apache-2.0
"""Gradients on their way: handed over as each is ready, fetched all at once.

A :class:`Slot` is a parameter that is reduced, with everything that does not
change from step to step. Its hook runs in the backward pass, on autograd's
thread, when the parameter's gradient is whole; after the last pass of a step it
hands the gradient over, while the rest of the backward pass goes on. So what a
hook does is paid for each parameter in each step, and is kept short; where there
are many small ones, one hook serves several (bundles.py).

:meth:`Reducer.finish` hands over what no hook did, so that ranks whose models
took different paths do not wait for each other, and waits for all.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Callable

import torch

from rueda import _core

from . import handles, mpi_ops
from .bundles import Bundles
from .functions import empty_sparse_like
from .slots import Group, Settings, Slot
from .tensors import DTYPES

__all__ = ["Reducer"]

_HAS_HOOKS = hasattr(torch.Tensor, "register_post_accumulate_grad_hook")
_strided = torch.strided


def _hook(param: torch.Tensor, call: Callable[..., None]) -> Any:
    """Have this called whenever the gradient of the parameter is whole."""
    if _HAS_HOOKS:
        return param.register_post_accumulate_grad_hook(call)
    # Before torch 2.1: behind any view is the node that adds to .grad. It lives
    # as long as somebody holds it.
    with torch.enable_grad():
        node = param.expand_as(param).grad_fn.next_functions[0][0]
    handle = node.register_hook(call)
    handle.node = node
    return handle


def _hook_slot(slot: Slot) -> None:
    """It may be frozen meanwhile, which does not end the hooks of others either."""
    param = slot.param
    is_frozen = not param.requires_grad
    if is_frozen:
        param.requires_grad_(True)
    slot.hook = _hook(param, slot)
    if is_frozen:
        param.requires_grad_(False)


class Reducer:
    """Reduces the gradients of one optimizer, and lives as long as that."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.slots: list[Slot] = []
        self.dormant: list[Slot] = []  # of parameters that do not ask for a gradient
        # What is under way, in order: the short way, and by handles of mpi_ops.
        self.direct: list[Slot] = []
        self.others: list[tuple[Any, list[Slot]]] = []
        self.others_sent = 0  # slots of others, and of groups that are not whole
        self.has_warned = False
        self.bundles = Bundles(_hook_slot)
        handles.holders.add(self)

    # ---- Which parameters ---------------------------------------------------

    def add(self, params: Iterable[tuple[torch.Tensor, str]]) -> None:
        """Reduce these too, as soon as they ask for a gradient."""
        self.dormant += [Slot(param, name) for param, name in params]
        self.wake()

    def wake(self) -> None:
        """Watch those parameters that have begun to ask for a gradient."""
        for slot in self.dormant:
            if slot.param.requires_grad:
                slot.passes_left = self.settings.passes
                slot.was_sparse = self.settings.only_sparse
                slot.is_short = self.settings.is_plain and self.settings.reduction is not None
                self._prepare_short(slot)
                _hook_slot(slot)
                self.slots.append(slot)
        self.dormant = [slot for slot in self.dormant if slot.hook is None]

    def join(self, params: list[torch.Tensor]) -> None:
        """Reduce these together."""
        slot_of = {id(slot.param): slot for slot in self.slots}
        slots = [slot_of[id(param)] for param in params if id(param) in slot_of]
        group = Group(slots)
        for slot in slots:
            slot.group = group
            slot.is_short = False

    @property
    def is_busy(self) -> bool:
        """Is something being reduced, or added up for it?"""
        passes = self.settings.passes
        if passes == 1:
            return bool(self.direct) or self.others_sent > 0
        return any(slot.passes_left < passes for slot in self.slots)

    def reset(self) -> None:
        """Leave what is under way to itself, and begin a step."""
        self._leave_behind()
        self.forget()

    def set_passes(self, passes: int) -> None:
        """From now on reduce after so many backward passes."""
        self.bundles.dissolve()
        self.settings.passes = passes
        self.reset()

    def forget(self) -> None:
        """Nothing is under way any more: begin a step."""
        self.direct.clear()
        self.others.clear()
        self.others_sent = 0
        passes = self.settings.passes
        for slot in self.slots:
            slot.passes_left = passes
            slot.sent = slot.context = None
            slot.is_stand_in = slot.may_be_brought = False
            if slot.group is not None:
                slot.group.waiting_for = len(slot.group.slots)

    def abandon(self) -> None:
        """Begin a step, when all that is under way has ended, however it did.

        Its names can be used again then. Ranks that have begun a backward pass do
        that together, and bring what others wait for. Who has not begun one does
        not wait, but the others wait for it.
        """
        if self.direct or self.others_sent:
            with suppress(Exception):
                self.finish()
        self.reset()

    def __del__(self) -> None:
        for slot in self.slots:
            if slot.hook is not None:
                slot.hook.remove()
        self._leave_behind()

    # ---- In the backward pass -----------------------------------------------

    def _prepare_short(self, slot: Slot) -> None:
        """Most gradients take the short way, by the slot itself, without Python.

        It is what allreduce_async_() comes to. Passes that are not the last of
        their step, and gradients that are not what the slot is prepared for, take
        the other way.
        """
        # The parameter keeps the hook, and is not to keep the optimizer.
        me = weakref.ref(self)

        def otherwise(*_: Any) -> None:
            if slot.passes_left == 1:
                me()._send(slot)
            else:
                _count_pass(slot)

        settings, param = self.settings, slot.param
        dtype = DTYPES.get(param.dtype)
        slot.is_short &= dtype is not None
        slot.prepare(
            slot.key.encode(), param.dtype, dtype or 0, _strided, tuple(param.shape),
            settings.process_set, settings.reduction or 0, settings.prescale, settings.postscale,
            self.direct, otherwise,
        )  # fmt: skip

    def _send(self, slot: Slot) -> None:
        """The gradient is whole: hand it over, or tell its group.

        If that fails, :meth:`finish` tries again.
        """
        grad = slot.param.grad
        is_sparse = grad.is_sparse and not self.settings.sparse_as_dense
        if is_sparse:
            self._send_sparse(slot, grad)
        else:
            self._prepare(slot, grad)
        if slot.group is not None:
            if slot.group.waiting_for == 1:
                self._send_group(slot.group)
            slot.group.waiting_for -= 1
        elif not is_sparse:
            handle = mpi_ops.allreduce_async_(slot.sent, None, slot.name, *self.settings.how())
            self.others.append((handle, [slot]))
        slot.passes_left = 0
        self.others_sent += 1

    def _prepare(self, slot: Slot, grad: torch.Tensor) -> None:
        slot.was_sparse = grad.is_sparse
        if grad.requires_grad:
            raise AssertionError(_HAS_GRAPH.format(name=slot.name))
        if slot.was_sparse:
            grad = grad.to_dense()
        if not self.settings.is_plain:
            grad, slot.context = self.settings.compression.compress(grad)
        slot.sent = grad
        slot.version = grad._version

    def _send_sparse(self, slot: Slot, grad: torch.Tensor) -> None:
        slot.was_sparse = True
        settings = self.settings
        handle = mpi_ops.sparse_allreduce_async(
            grad, slot.name, settings.op, process_set=settings.process_set
        )
        self.others.append((handle, [slot]))

    def _send_group(self, group: Group) -> None:
        # Sparse gradients went by themselves.
        slots = [slot for slot in group.slots if slot.sent is not None]
        if slots:
            tensors = [slot.sent for slot in slots]
            handle = mpi_ops.grouped_allreduce_async_(
                tensors, None, slots[0].name, *self.settings.how()
            )
            self.others.append((handle, slots))

    # ---- At the end of a step -----------------------------------------------

    def finish(self) -> None:
        """Hand over what is left, wait for everything, and write it into ``.grad``.

        Also after a failure nothing is under way any more; the first is raised.
        """
        if self.dormant:
            self.wake()
        failure = None
        try:
            if len(self.direct) + self.others_sent < len(self.slots):
                self._send_rest()
        except Exception as error:
            failure = error
        failure = self._finish_direct() or failure
        for handle, slots in self.others:
            try:
                found = self._finish_other(handle, slots)
            except Exception as error:
                found = error
            failure = failure or found
        if self.others_sent or failure is not None:
            self.reset()
        if failure is not None:
            raise failure

    def _leave_behind(self) -> None:
        for slot in self.direct:
            if slot.sent is not None:
                handles.leave_behind([slot.handle], slot.sent)
        for handle, _ in self.others:
            if not callable(handle):
                handles.abandon(handle)

    def _finish_direct(self) -> Exception | None:
        """Those that went the short way, which are ready for the next step then."""
        passes = self.settings.passes
        odd: list[Slot] = []
        try:
            failure = _core.settle(self.direct, passes, odd)
        except Exception as error:
            return error  # nothing runs any more
        changed = [slot for slot in odd if _has_changed(slot)]
        for slot in odd:
            self._deliver(slot)
            slot.passes_left = passes
            slot.sent = None
        if any(slot.hook is None for slot in odd):
            self.has_warned = False  # no hook of its own has seen what happened
            self.bundles.dissolve(is_for_long=True)
        elif passes == 1:
            self.bundles.note(self.direct)
        self.direct.clear()
        return failure or self._warn_of(changed)

    def _finish_other(self, handle: Any, slots: list[Slot]) -> Exception | None:
        if callable(handle):  # sparse
            slots[0].param.grad = handle()
            return None
        changed = [slot for slot in slots if _has_changed(slot)]
        mpi_ops.synchronize(handle)  # which may write, where it has a copy
        for slot in slots:
            self._deliver(slot)
        return self._warn_of(changed)

    def _send_rest(self) -> None:
        for slot in self.slots:
            if slot.passes_left == 0:
                continue
            if slot.hook is None:
                self.bundles.dissolve()
            if slot.param.grad is None:
                self._stand_in(slot)
            self._send(slot)

    def _stand_in(self, slot: Slot) -> None:
        """Nothing came for this parameter here, but the others may have something."""
        param = slot.param
        slot.is_stand_in = not param.requires_grad
        param.grad = empty_sparse_like(param) if slot.was_sparse else torch.zeros_like(param)

    def warn_of_scaler(self) -> None:
        """A GradScaler did not wait for the gradients."""
        if not self.has_warned:
            self.has_warned = True
            warnings.warn(_UNSCALED + _WAIT_FIRST, stacklevel=5)

    def _warn_of(self, changed: list[Slot]) -> Exception | None:
        """Once. Returns the warning where that is an error: others are still to be waited for."""
        if not changed or self.has_warned:
            return None
        self.has_warned = True
        try:
            warnings.warn(_CHANGED.format(name=changed[0].name) + _WAIT_FIRST, stacklevel=5)
        except Warning as warning:
            return warning
        return None

    def _deliver(self, slot: Slot) -> None:
        grad, result = slot.param.grad, slot.sent
        if result is grad and not slot.is_stand_in:
            return
        if not self.settings.is_plain:
            result = self.settings.compression.decompress(result, slot.context)
        if slot.was_sparse:
            result = result.to_sparse(1)
        if slot.is_stand_in and not result.any():
            # Nobody trains it, and the optimizer is to leave it alone.
            slot.param.grad = None
        elif grad is None or slot.was_sparse:
            slot.param.grad = result
        else:
            grad.copy_(result)


def _has_changed(slot: Slot) -> bool:
    """Since it was handed over. Views of one buffer count the changes of all of it."""
    return slot.sent._version != slot.version and not slot.sent._is_view()


def _count_pass(slot: Slot) -> None:
    """A pass that is not the last one of its step."""
    if slot.passes_left == 0:
        raise AssertionError(_TOO_MANY.format(name=slot.name))
    slot.passes_left -= 1


_TOO_MANY = (
    'the gradient of "{name}" was computed once more while the last one was being reduced. Call '
    "optimizer.step() after each backward pass, or say in backward_passes_per_step how many there "
    "are for each step. With reentrant checkpointing a parameter that is used in two pieces counts "
    "twice: use torch.utils.checkpoint with use_reentrant=False"
)
_HAS_GRAPH = (
    'the gradient of "{name}" has a graph of its own (create_graph=True), which a reduction in '
    "place would break; use torch.autograd.grad() for gradients that are differentiated again"
)
_CHANGED = (
    'the gradient of "{name}" was changed while it was being reduced, so its value is undefined. '
)
_UNSCALED = (
    "scaler.step() looked at gradients, and divided them, while they were being reduced, so their "
    "values are undefined. "
)
_WAIT_FIRST = (
    "Call optimizer.synchronize() before clipping or scaler.unscale_(), and then optimizer.step() "
    "or scaler.step() within optimizer.skip_synchronize()"
)
