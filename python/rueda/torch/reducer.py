# SPDX-License-Identifier: Apache-2.0
"""Gradients on their way: handed over as each is ready, fetched all at once.

A :class:`Gradient` is a parameter that is reduced, with everything that does not
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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Callable

import torch

from rueda import _core
from rueda.common import handles

from . import mpi_ops
from .bundles import Bundles
from .functions import empty_sparse_like
from .gradients import Gradient, Group, Settings
from .shared import HAS_GRAPH, TOO_MANY, SharedGradients
from .tensors import DTYPES

__all__ = ["Reducer"]

_HAS_HOOKS = hasattr(torch.Tensor, "register_post_accumulate_grad_hook")
_strided = torch.strided

# More than any step has.
_MANY_PASSES = 1 << 30


def _hook(param: torch.Tensor, call: Callable[..., None]) -> Any:
    """Have this called whenever the gradient of the parameter is whole."""
    if _HAS_HOOKS:
        return param.register_post_accumulate_grad_hook(call)
    # Before torch 2.1: behind any view is the node that adds to .grad. It lives
    # as long as a reference to it.
    with torch.enable_grad():
        node = param.expand_as(param).grad_fn.next_functions[0][0]
    handle = node.register_hook(call)
    handle.node = node
    return handle


def _hook_gradient(gradient: Gradient) -> None:
    """It may be frozen meanwhile, which does not end the hooks of others either."""
    param = gradient.param
    is_frozen = not param.requires_grad
    if is_frozen:
        param.requires_grad_(True)
    gradient.hook = _hook(param, gradient)
    if is_frozen:
        param.requires_grad_(False)


class Reducer:
    """Reduces the gradients of one optimizer, and lives as long as that."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.gradients: list[Gradient] = []
        self.dormant: list[Gradient] = []  # of parameters that do not ask for a gradient
        # What is in flight, in order: the short way, and by handles of mpi_ops.
        self.fast_sent: list[Gradient] = []
        self.slow_sent: list[tuple[Any, list[Gradient]]] = []
        self.slow_count = 0  # gradients of others, and of groups that are not whole
        self.has_warned = False
        self.shared: SharedGradients | None = None  # these are not in `gradients`
        self.bundles = Bundles(_hook_gradient)
        handles.holders.add(self)

    # ---- Which parameters ---------------------------------------------------

    def add(self, params: Iterable[tuple[torch.Tensor, str]]) -> None:
        """Reduce these too, as soon as they ask for a gradient."""
        self.dormant += [Gradient(param, name) for param, name in params]
        self.wake()

    def wake(self) -> None:
        """Watch those parameters that have begun to ask for a gradient."""
        for gradient in self.dormant:
            if gradient.param.requires_grad:
                gradient.passes_left = self.settings.passes
                gradient.was_sparse = self.settings.only_sparse
                gradient.is_fast = self.settings.is_plain and self.settings.reduction is not None
                self._prepare_fast(gradient)
                _hook_gradient(gradient)
                self.gradients.append(gradient)
        self.dormant = [gradient for gradient in self.dormant if gradient.hook is None]

    def join(self, params: list[torch.Tensor]) -> None:
        """Reduce these together."""
        gradient_of = {id(gradient.param): gradient for gradient in self.gradients}
        gradients = [gradient_of[id(param)] for param in params if id(param) in gradient_of]
        group = Group(gradients)
        for gradient in gradients:
            gradient.group = group
            gradient.is_fast = False

    # ---- Which of them are in shared memory -----------------------------------

    def share(self, shared: SharedGradients) -> None:
        """All ranks do, between the same two steps."""
        self.bundles.dissolve()
        for gradient in shared.gradients:
            gradient.hook.remove()
            gradient.hook = None
        gone = set(map(id, shared.gradients))
        self.gradients = [one for one in self.gradients if id(one) not in gone]
        self.shared = shared
        shared.install()

    def unshare(self) -> None:
        """And back. Where they lie now they may stay, which is as good as anywhere."""
        shared, self.shared = self.shared, None
        if shared is None:
            return
        shared.release()
        for gradient in shared.gradients:
            gradient.passes_left = self.settings.passes
            _hook_gradient(gradient)
        self.gradients += shared.gradients

    def _still_shares(self) -> bool:
        if self.shared is not None and not self.shared.is_busy and not self.shared.fits():
            self.unshare()
        return self.shared is not None

    def zero(self) -> bool:
        """Set the gradients to zero, if that is different from what an optimizer does."""
        if not self._still_shares():
            return False
        assert self.shared is not None
        self.shared.zero()
        for gradient in self.gradients:
            gradient.param.grad = None
        for gradient in self.dormant:
            gradient.param.grad = None
        return True

    @property
    def all_gradients(self) -> list[Gradient]:
        return self.gradients + (self.shared.gradients if self.shared is not None else [])

    @property
    def is_busy(self) -> bool:
        """Is something being reduced, or added up for it?"""
        if self.shared is not None and self.shared.is_busy:
            return True
        passes = self.settings.passes
        if passes == 1:
            return bool(self.fast_sent) or self.slow_count > 0
        return any(gradient.passes_left < passes for gradient in self.gradients)

    def reset(self) -> None:
        """Leave what is in flight to itself, and begin a step."""
        self._leave_behind()
        self.forget()

    def set_passes(self, passes: int) -> None:
        """From now on reduce after this many backward passes."""
        self.bundles.dissolve()
        self.settings.passes = passes
        if self.shared is not None:
            self.shared.set_passes(passes)
        self.reset()

    def forget(self) -> None:
        """Nothing is in flight any more: begin a step."""
        self.fast_sent.clear()
        self.slow_sent.clear()
        self.slow_count = 0
        passes = self.settings.passes
        for gradient in self.gradients:
            gradient.passes_left = passes
            gradient.sent = gradient.context = None
            gradient.is_stand_in = gradient.may_be_brought = False
            if gradient.group is not None:
                gradient.group.waiting_for = len(gradient.group.gradients)

    def abandon(self) -> None:
        """Begin a step, when all that is in flight has ended, however it did.

        Its names can be used again then. Ranks that have begun a backward pass do
        that together, and submit what others wait for. A rank that has not begun
        one does not wait, but the others wait for it.
        """
        if self.fast_sent or self.slow_count or (self.shared and self.shared.in_flight):
            with suppress(Exception):
                self.finish()
        self.reset()

    def __del__(self) -> None:
        for gradient in self.gradients:
            if gradient.hook is not None:
                gradient.hook.remove()
        self._leave_behind()

    # ---- In the backward pass -----------------------------------------------

    def _prepare_fast(self, gradient: Gradient) -> None:
        """Most gradients take the short way, by the gradient itself, without Python.

        It is what allreduce_async_() comes to. Passes that are not the last of
        their step, and gradients that are not what the gradient is prepared for, take
        the other way.
        """
        # The parameter keeps the hook, and is not to keep the optimizer.
        me = weakref.ref(self)

        def slow_path(*_: Any) -> None:
            if gradient.passes_left == 1:
                me()._send(gradient)
            else:
                _count_pass(gradient)

        settings, param = self.settings, gradient.param
        dtype = DTYPES.get(param.dtype)
        gradient.is_fast &= dtype is not None
        gradient.prepare(
            gradient.key.encode(), param.dtype, dtype or 0, _strided, tuple(param.shape),
            settings.process_set, settings.reduction or 0, settings.prescale, settings.postscale,
            self.fast_sent, slow_path,
        )  # fmt: skip

    def _send(self, gradient: Gradient) -> None:
        """The gradient is whole: hand it over, or tell its group.

        If that fails, :meth:`finish` tries again.
        """
        grad = gradient.param.grad
        is_sparse = grad.is_sparse and not self.settings.sparse_as_dense
        if is_sparse:
            self._send_sparse(gradient, grad)
        else:
            self._prepare(gradient, grad)
        if gradient.group is not None:
            if gradient.group.waiting_for == 1:
                self._send_group(gradient.group)
            gradient.group.waiting_for -= 1
        elif not is_sparse:
            handle = mpi_ops.allreduce_async_(
                gradient.sent, None, gradient.name, *self.settings.how()
            )
            self.slow_sent.append((handle, [gradient]))
        gradient.passes_left = 0
        self.slow_count += 1

    def _prepare(self, gradient: Gradient, grad: torch.Tensor) -> None:
        gradient.was_sparse = grad.is_sparse
        if grad.requires_grad:
            raise AssertionError(HAS_GRAPH.format(name=gradient.name))
        if gradient.was_sparse:
            grad = grad.to_dense()
        if not self.settings.is_plain:
            grad, gradient.context = self.settings.compression.compress(grad)
        gradient.sent = grad
        gradient.version = grad._version

    def _send_sparse(self, gradient: Gradient, grad: torch.Tensor) -> None:
        gradient.was_sparse = True
        settings = self.settings
        handle = mpi_ops.sparse_allreduce_async(
            grad, gradient.name, settings.op, process_set=settings.process_set
        )
        self.slow_sent.append((handle, [gradient]))

    def _send_group(self, group: Group) -> None:
        # Sparse gradients went by themselves.
        gradients = [gradient for gradient in group.gradients if gradient.sent is not None]
        if gradients:
            tensors = [gradient.sent for gradient in gradients]
            handle = mpi_ops.grouped_allreduce_async_(
                tensors, None, gradients[0].name, *self.settings.how()
            )
            self.slow_sent.append((handle, gradients))

    def hand_over(self, gradient: Gradient) -> None:
        """Now, however many passes are still to come; all of its bucket if it shares one."""
        if self.shared is None or not self.shared.hand_over(gradient):
            self._send(gradient)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Backward passes meanwhile add to gradients, and are not counted.

        What is in flight is not to be added to, as ever.
        """
        self.bundles.dissolve()
        before = [(gradient, gradient.passes_left) for gradient in self.gradients]
        for gradient, passes_left in before:
            if passes_left > 0:
                gradient.passes_left = _MANY_PASSES
        if self.shared is not None:
            self.shared.pause(True)
        try:
            yield
        finally:
            if self.shared is not None:
                self.shared.pause(False)
            for gradient, passes_left in before:
                # Fewer: a step has ended meanwhile, and the next one has begun.
                if gradient.passes_left > _MANY_PASSES // 2:
                    gradient.passes_left = passes_left

    # ---- At the end of a step -----------------------------------------------

    def finish(self) -> None:
        """Hand over what is left, wait for everything, and write it into ``.grad``.

        Also after a failure nothing is in flight any more; the first is raised.
        """
        if self.dormant:
            self.wake()
        self._still_shares()
        failure = None
        try:
            if len(self.fast_sent) + self.slow_count < len(self.gradients):
                self._send_rest()
        except Exception as error:
            failure = error
        changed = None
        if self.shared is not None:
            found, changed = self.shared.finish()
            failure = failure or found
        failure = self._finish_fast() or failure
        for handle, gradients in self.slow_sent:
            try:
                found = self._finish_slow(handle, gradients)
            except Exception as error:
                found = error
            failure = failure or found
        if self.slow_count or failure is not None:
            self.reset()
        if changed is not None and failure is None:
            failure = self._warn(changed)
        if failure is not None:
            raise failure

    def _leave_behind(self) -> None:
        for gradient in self.fast_sent:
            if gradient.sent is not None:
                handles.leave_behind([gradient.handle], gradient.sent)
        for handle, _ in self.slow_sent:
            if not callable(handle):
                handles.abandon(handle)

    def _finish_fast(self) -> Exception | None:
        """Those that went the short way, which are ready for the next step then."""
        passes = self.settings.passes
        odd: list[Gradient] = []
        try:
            failure = _core.settle(self.fast_sent, passes, odd)
        except Exception as error:
            return error  # nothing runs any more
        changed = [gradient for gradient in odd if _has_changed(gradient)]
        for gradient in odd:
            self._deliver(gradient)
            gradient.passes_left = passes
            gradient.sent = None
        if any(gradient.hook is None for gradient in odd):
            self.has_warned = False  # no hook of its own has seen what happened
            self.bundles.dissolve(is_for_long=True)
        elif passes == 1:
            self.bundles.note(self.fast_sent)
        self.fast_sent.clear()
        return failure or self._warn_of(changed)

    def _finish_slow(self, handle: Any, gradients: list[Gradient]) -> Exception | None:
        if callable(handle):  # sparse
            gradients[0].param.grad = handle()
            return None
        changed = [gradient for gradient in gradients if _has_changed(gradient)]
        mpi_ops.synchronize(handle)  # which may write, where it has a copy
        for gradient in gradients:
            self._deliver(gradient)
        return self._warn_of(changed)

    def _send_rest(self) -> None:
        for gradient in self.gradients:
            if gradient.passes_left == 0:
                continue
            if gradient.hook is None:
                self.bundles.dissolve()
            if gradient.param.grad is None:
                self._stand_in(gradient)
            self._send(gradient)

    def _stand_in(self, gradient: Gradient) -> None:
        """Nothing came for this parameter here, but the others may have something."""
        param = gradient.param
        gradient.is_stand_in = not param.requires_grad
        param.grad = empty_sparse_like(param) if gradient.was_sparse else torch.zeros_like(param)

    def warn_of_scaler(self) -> None:
        """A GradScaler did not wait for the gradients."""
        if not self.has_warned:
            self.has_warned = True
            warnings.warn(_UNSCALED + _WAIT_FIRST, stacklevel=5)

    def _warn_of(self, changed: list[Gradient]) -> Exception | None:
        """Once. Returns the warning where that is an error: others are still to be waited for."""
        return self._warn(changed[0].name) if changed else None

    def _warn(self, name: str) -> Exception | None:
        if self.has_warned:
            return None
        self.has_warned = True
        try:
            warnings.warn(_CHANGED.format(name=name) + _WAIT_FIRST, stacklevel=6)
        except Warning as warning:
            return warning
        return None

    def _deliver(self, gradient: Gradient) -> None:
        grad, result = gradient.param.grad, gradient.sent
        if result is grad and not gradient.is_stand_in:
            return
        if not self.settings.is_plain:
            result = self.settings.compression.decompress(result, gradient.context)
        if gradient.was_sparse:
            result = result.to_sparse(1)
        if gradient.is_stand_in and not result.any():
            # No rank trains it, and the optimizer is to leave it alone.
            gradient.param.grad = None
        elif grad is None or gradient.was_sparse:
            gradient.param.grad = result
        else:
            grad.copy_(result)


def _has_changed(gradient: Gradient) -> bool:
    """Since it was handed over. Views of one buffer count the changes of all of it."""
    return gradient.sent._version != gradient.version and not gradient.sent._is_view()


def _count_pass(gradient: Gradient) -> None:
    """A pass that is not the last one of its step."""
    if gradient.passes_left == 0:
        raise AssertionError(TOO_MANY.format(name=gradient.name))
    gradient.passes_left -= 1


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
