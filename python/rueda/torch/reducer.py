# SPDX-License-Identifier: Apache-2.0
"""Gradients on their way: handed over as each is ready, fetched all at once.

A :class:`Slot` is a parameter that is reduced, with everything that does not
change from step to step. Its hook runs in the backward pass, on autograd's
thread, when the parameter's gradient is whole; after the last pass of a step it
hands the gradient over, while the rest of the backward pass goes on. So what a
hook does is paid for each parameter in each step, and is kept short.

:meth:`Reducer.finish` hands over what no hook did, so that ranks whose models
took different paths do not wait for each other, and waits for all.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable
from typing import Any, Callable

import torch

from rueda import _core
from rueda.common.process_sets import ProcessSet

from . import mpi_ops
from .compression import Compression
from .functions import empty_sparse_like
from .submit import REDUCTIONS, set_of
from .tensors import DTYPES

__all__ = ["Reducer", "Slot"]


# What nobody waits for any more, but is still written to: (handle, tensor).
_left_behind: list[tuple[int, torch.Tensor]] = []


class Settings:
    """What is the same for all gradients of an optimizer."""

    def __init__(
        self,
        compression: Any,
        passes: int,
        op: int,
        predivide: float,
        sparse_as_dense: bool,
        process_set: ProcessSet,
    ) -> None:
        self.compression = compression
        self.is_plain = compression is Compression.none
        self.passes = passes
        self.op = op
        self.reduction = REDUCTIONS.get(op)  # None: not by the short way
        # The average divides by the number of ranks besides.
        self.prescale = 1.0 / predivide
        self.postscale = predivide
        self.sparse_as_dense = sparse_as_dense
        self.process_set = process_set

    def how(self) -> tuple[Any, ...]:
        """The last arguments of allreduce_async_()."""
        return self.op, self.prescale, self.postscale, self.process_set


class Group:
    """Slots that are reduced together, when the last of them is ready."""

    __slots__ = ("slots", "waiting_for")

    def __init__(self, slots: list[Slot]) -> None:
        self.slots = slots
        self.waiting_for = len(slots)


class Slot:
    """A parameter that is reduced, and where its gradient of this step is."""

    __slots__ = (
        "param",
        "name",
        "key",
        "group",
        "hook",
        "passes_left",
        "sent",
        "version",
        "context",
        "was_sparse",
        "is_stand_in",
    )

    def __init__(self, param: torch.Tensor, name: str) -> None:
        self.param = param
        self.name = name
        self.key = f"allreduce.{name}"  # what allreduce_async_() calls it
        self.group: Group | None = None
        self.hook: Any = None
        self.passes_left = 1  # 0: handed over
        self.sent: torch.Tensor | None = None  # what is being reduced
        self.version = 0  # of what was handed over: it must not change meanwhile
        self.context: Any = None  # of the compressor
        self.was_sparse = False  # the last time
        self.is_stand_in = False  # of a frozen parameter without a gradient


def _hook(param: torch.Tensor, call: Callable[..., None]) -> Any:
    """Have this called whenever the gradient of the parameter is whole."""
    if hasattr(param, "register_post_accumulate_grad_hook"):
        return param.register_post_accumulate_grad_hook(call)
    # Before torch 2.1: the node that adds to .grad is found behind any view. It
    # lives as long as somebody holds it.
    node = param.expand_as(param).grad_fn.next_functions[0][0]
    handle = node.register_hook(call)
    handle.node = node
    return handle


class Reducer:
    """Reduces the gradients of one optimizer, and lives as long as that."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.slots: list[Slot] = []
        self.dormant: list[Slot] = []  # of parameters that do not ask for a gradient
        # What is under way, in order: by _core's handles, and by those of mpi_ops.
        self.direct: list[tuple[int, Slot]] = []
        self.others: list[tuple[Any, list[Slot]]] = []
        self.unsent = 0  # slots that no hook has handed over in this step
        self.has_warned = False

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
                slot.hook = _hook(slot.param, self._on_ready(slot))
                self.slots.append(slot)
                self.unsent += 1
        self.dormant = [slot for slot in self.dormant if slot.hook is None]

    def join(self, params: list[torch.Tensor]) -> None:
        """Reduce these together."""
        slot_of = {id(slot.param): slot for slot in self.slots}
        slots = [slot_of[id(param)] for param in params if id(param) in slot_of]
        group = Group(slots)
        for slot in slots:
            slot.group = group

    @property
    def is_busy(self) -> bool:
        """Is something being reduced, or added up for it?"""
        passes = self.settings.passes
        return self.unsent < len(self.slots) or (
            passes > 1 and any(slot.passes_left < passes for slot in self.slots)
        )

    def reset(self) -> None:
        """Forget what is under way, and begin a step."""
        if self.direct:
            _leave_behind(self.direct)
        self.direct.clear()
        self.others.clear()
        self.unsent = len(self.slots)
        passes = self.settings.passes
        for slot in self.slots:
            slot.passes_left = passes
            slot.sent = slot.context = None
            slot.is_stand_in = False
            if slot.group is not None:
                slot.group.waiting_for = len(slot.group.slots)

    def __del__(self) -> None:
        for slot in self.slots:
            slot.hook.remove()
        if self.direct:
            _leave_behind(self.direct)

    # ---- In the backward pass -----------------------------------------------

    def _on_ready(self, slot: Slot) -> Callable[..., None]:
        # The parameter keeps the hook, and is not to keep the optimizer.
        me = weakref.ref(self)

        def on_ready(*_: Any) -> None:
            if slot.passes_left == 1:
                slot.passes_left = 0
                me()._send(slot)
            elif slot.passes_left > 1:
                slot.passes_left -= 1
            else:
                raise AssertionError(_TOO_MANY.format(name=slot.name))

        return on_ready

    def _send(self, slot: Slot) -> None:
        """The gradient is whole: hand it over, or tell its group."""
        self.unsent -= 1
        settings = self.settings
        grad = slot.param.grad
        is_sparse = grad.is_sparse and not settings.sparse_as_dense
        if is_sparse:
            self._send_sparse(slot, grad)
        else:
            self._prepare(slot, grad)
        if slot.group is not None:
            slot.group.waiting_for -= 1
            if slot.group.waiting_for == 0:
                self._send_group(slot.group)
        elif not is_sparse:
            self._send_dense(slot, slot.sent)

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

    def _send_dense(self, slot: Slot, sent: torch.Tensor) -> None:
        settings = self.settings
        dtype = DTYPES.get(sent.dtype)
        is_short = dtype is not None and settings.reduction is not None
        if is_short and sent.is_cpu and sent.is_contiguous():
            # What allreduce_async_() comes to, without its checks.
            address = sent.data_ptr()
            handle = _core.submit(
                _core.KIND_ALLREDUCE,
                slot.key,
                set_of(settings.process_set),
                dtype,
                address,
                address,
                sent.shape,
                settings.reduction,
                0,
                settings.prescale,
                settings.postscale,
            )
            self.direct.append((handle, slot))
            return
        handle = mpi_ops.allreduce_async_(sent, None, slot.name, *settings.how())
        self.others.append((handle, [slot]))

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
            if self.unsent:
                self._send_rest()
        except Exception as error:
            failure = error
        for handle, slot in self.direct:
            try:
                _core.wait(handle)
                self._deliver(slot)
            except Exception as error:
                failure = failure or error
        self.direct.clear()
        for handle, slots in self.others:
            try:
                self._finish_other(handle, slots)
            except Exception as error:
                failure = failure or error
        self.reset()
        if failure is not None:
            raise failure

    def _finish_other(self, handle: Any, slots: list[Slot]) -> None:
        if callable(handle):  # sparse
            slots[0].param.grad = handle()
            return
        mpi_ops.synchronize(handle)
        for slot in slots:
            self._deliver(slot)

    def _send_rest(self) -> None:
        for slot in self.slots:
            if slot.passes_left == 0:
                continue
            slot.passes_left = 0
            if slot.param.grad is None:
                self._stand_in(slot)
            else:
                self._send(slot)

    def _stand_in(self, slot: Slot) -> None:
        """Nothing came for this parameter here, but the others may have something."""
        param = slot.param
        slot.is_stand_in = not param.requires_grad
        param.grad = empty_sparse_like(param) if slot.was_sparse else torch.zeros_like(param)
        self._send(slot)

    def _deliver(self, slot: Slot) -> None:
        grad, result = slot.param.grad, slot.sent
        if result._version != slot.version and not self.has_warned:
            self.has_warned = True
            warnings.warn(_CHANGED.format(name=slot.name), stacklevel=5)
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


def _leave_behind(pending: list[tuple[int, Slot]]) -> None:
    """Keep the memory of what is under way until it has ended."""
    more = [(handle, slot.sent) for handle, slot in pending if slot.sent is not None]
    _left_behind[:] = [one for one in _left_behind + more if not _has_ended(one[0])]


def _has_ended(handle: int) -> bool:
    try:
        if not _core.poll(handle):
            return False
        _core.wait(handle)
    except (RuntimeError, ValueError):
        pass  # it has failed, or all of the job has ended
    return True


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
    "Call optimizer.synchronize() before clipping or scaler.unscale_(), and then optimizer.step() "
    "or scaler.step() within optimizer.skip_synchronize()"
)
