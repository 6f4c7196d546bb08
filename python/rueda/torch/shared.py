# SPDX-License-Identifier: Apache-2.0
"""Gradients in memory that all ranks of the host share.

The gradients of a bucket lie one after another in the segment, and ``.grad`` of each
parameter is a view of that. Autograd adds to the view in place, the ranks add up the
bucket where it is, and nothing is packed, published or copied back. A bucket is one
operation, so that many small gradients cost one.

- ``zero_grad()`` zeroes whole buckets and leaves the views where they are, also with
  ``set_to_none=True``. A gradient of ``LONE_BYTES`` or more is a bucket of its own and is
  set to None all the same: to zero it and add to it costs more than to copy it once, when
  autograd has made it.
- Only the last gradient of a bucket, in the order of an earlier step, has a hook. Whether
  the others are there is seen by their versions, which count how often autograd has added
  to each: all must have been added to as often as the last. If not, the bucket is left to
  the end of the step.
- Whatever a program does to ``.grad`` in between, the same operations run on all ranks:
  at the end of a step a gradient that is elsewhere is copied to its place, and one that
  is not there is zero.

chosen.py decides whether an optimizer has this.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Callable

import torch
from torch.utils import dlpack

from rueda import _core
from rueda.common.operations import key_of, set_of

from .gradients import Gradient, Settings
from .tensors import DTYPES

__all__ = ["LONE_BYTES", "SharedGradients"]

#: A bucket is full with this much.
BUCKET_BYTES = 4 << 20
#: From here on a gradient has a bucket of its own, which is copied to.
LONE_BYTES = 1 << 20
#: Views begin on cache lines.
ALIGN_BYTES = 64


class _Bucket:
    """Neighbours in the segment, that are reduced together."""

    def __init__(self, gradients: Sequence[Gradient]) -> None:
        self.gradients = list(gradients)
        self.params = [gradient.param for gradient in gradients]
        first = self.params[0]
        self.dtype = DTYPES[first.dtype]
        each = first.element_size()
        starts, end = [], 0
        for param in self.params:
            starts.append(end)
            end += -(-param.numel() * each // ALIGN_BYTES) * ALIGN_BYTES
        capsule, self.address = _core.shared(max(end, ALIGN_BYTES))
        self.whole = dlpack.from_dlpack(capsule).view(first.dtype)
        # .data: each view counts its own changes.
        self.views = [
            self.whole[start // each : start // each + param.numel()].view_as(param).data
            for param, start in zip(self.params, starts)
        ]
        self.count = self.whole.numel()
        self.is_lone = len(self.params) == 1 and end >= LONE_BYTES
        self.name = f"shared.{gradients[0].key}"
        self.hook: Any = None
        self.core: int | None = None  # while it is being reduced
        self.passes_left = 1
        self.versions: list[int] = []  # when the step began, or was handed over
        self.note_versions()

    def note_versions(self) -> None:
        self.versions = [view._version for view in self.views]

    def fits(self) -> bool:
        """Are the parameters still of the types and shapes that they had?"""
        return all(
            param.dtype is view.dtype and param.shape == view.shape
            for param, view in zip(self.params, self.views)
        )

    def is_whole(self) -> bool:
        """Has autograd added to all views as often as to the last?"""
        versions = [view._version for view in self.views]
        added = versions[-1] - self.versions[-1]
        return added > 0 and all(
            param.grad is view and now - before == added
            for param, view, now, before in zip(self.params, self.views, versions, self.versions)
        )

    def gather(self) -> bool:
        """Copy to its place what is elsewhere; False: autograd made a graph of gradients."""
        is_plain = True
        for param, view in zip(self.params, self.views):
            grad = param.grad
            if grad is view:
                continue
            if grad is None:
                view.zero_()
            else:
                is_plain = is_plain and not grad.requires_grad
                view.copy_(grad.to_dense() if grad.is_sparse else grad)
            param.grad = view
        return is_plain


def _buckets_of(gradients: Sequence[Gradient]) -> list[_Bucket]:
    """In this order; those of one type that are not too large go together."""
    found: list[list[Gradient]] = []
    open_of: dict[torch.dtype, tuple[list[Gradient], int]] = {}
    for gradient in gradients:
        param = gradient.param
        size = param.numel() * param.element_size()
        if size >= LONE_BYTES:
            found.append([gradient])
            continue
        bucket, filled = open_of.get(param.dtype, ([], 0))
        if not bucket or filled + size > BUCKET_BYTES:
            bucket, filled = [], 0
            found.append(bucket)
        bucket.append(gradient)
        open_of[param.dtype] = (bucket, filled + size)
    return [_Bucket(bucket) for bucket in found]


class SharedGradients:
    """The gradients of a reducer that are in the segment."""

    def __init__(self, settings: Settings, gradients: Sequence[Gradient]) -> None:
        """In the order in which they come. RuntimeError: there is not enough memory."""
        self._settings = settings
        self.gradients = list(gradients)
        self._buckets = _buckets_of(gradients)
        self._is_paused = False

    def install(self) -> None:
        """Take the gradients over as they are now, between two steps."""
        for bucket in self._buckets:
            bucket.gather()
            bucket.note_versions()
            bucket.passes_left = self._settings.passes
            bucket.hook = bucket.params[-1].register_post_accumulate_grad_hook(
                _hook_of(self, bucket)
            )

    def release(self) -> None:
        """Leave the gradients where they are. Nothing is in flight."""
        for bucket in self._buckets:
            if bucket.hook is not None:
                bucket.hook.remove()
                bucket.hook = None

    @property
    def is_busy(self) -> bool:
        passes = self._settings.passes
        return any(one.core is not None or one.passes_left < passes for one in self._buckets)

    @property
    def in_flight(self) -> list[tuple[Gradient, int]]:
        """Each with the handle of the operation that it is part of."""
        return [
            (one, bucket.core)
            for bucket in self._buckets
            if bucket.core is not None
            for one in bucket.gradients
        ]

    def passes_left(self) -> list[tuple[Gradient, int]]:
        """Until each is reduced; 0: it is in flight."""
        return [
            (one, 0 if bucket.core is not None else bucket.passes_left)
            for bucket in self._buckets
            for one in bucket.gradients
        ]

    def set_passes(self, passes: int) -> None:
        for bucket in self._buckets:
            bucket.passes_left = passes

    def pause(self, is_paused: bool) -> None:
        """Passes meanwhile do not count."""
        self._is_paused = is_paused

    # ---- In the backward pass -----------------------------------------------

    def _on_ready(self, bucket: _Bucket) -> None:
        if bucket.core is not None:
            raise AssertionError(TOO_MANY.format(name=bucket.gradients[-1].name))
        if self._is_paused or not bucket.fits():
            return
        if bucket.passes_left > 0:
            bucket.passes_left -= 1
        if bucket.passes_left > 0:
            return
        if bucket.is_lone:
            with torch.no_grad():
                self._gather(bucket)
            self._submit(bucket)
        elif bucket.is_whole():
            self._submit(bucket)

    def _gather(self, bucket: _Bucket) -> None:
        if not bucket.gather():
            raise AssertionError(HAS_GRAPH.format(name=bucket.gradients[-1].name))

    def _submit(self, bucket: _Bucket) -> None:
        settings = self._settings
        bucket.note_versions()
        bucket.core = _core.submit(
            _core.KIND_ALLREDUCE, key_of("allreduce", bucket.name), set_of(settings.process_set),
            bucket.dtype, bucket.address, bucket.address, (bucket.count,), settings.reduction,
            0, settings.prescale, settings.postscale, unpacked=1,
        )  # fmt: skip

    def hand_over(self, gradient: Gradient) -> bool:
        """The bucket of this one as it is now; False: it is not here."""
        for bucket in self._buckets:
            if gradient in bucket.gradients:
                if bucket.core is None:
                    self._gather(bucket)
                    self._submit(bucket)
                return True
        return False

    # ---- Between steps --------------------------------------------------------

    def fits(self) -> bool:
        """If not, parameters were changed, which all ranks do alike: share no more."""
        return all(bucket.fits() for bucket in self._buckets)

    def zero(self) -> None:
        """What zero_grad() does with these."""
        for bucket in self._buckets:
            if bucket.is_lone:
                bucket.params[0].grad = None
                continue
            bucket.whole.zero_()
            for param, view in zip(bucket.params, bucket.views):
                if param.grad is not view:
                    param.grad = view
            bucket.note_versions()

    def finish(self) -> tuple[Exception | None, str | None]:
        """Hand over the rest and wait for all: the first failure, and what was changed."""
        failure: Exception | None = None
        changed: str | None = None
        for bucket in self._buckets:
            if bucket.core is None:
                try:
                    self._gather(bucket)
                    self._submit(bucket)
                except Exception as error:
                    failure = failure or error
        for bucket in self._buckets:
            if bucket.core is None:
                continue
            changed = changed or _changed_in(bucket)
            core, bucket.core = bucket.core, None
            try:
                _core.wait(core)
            except Exception as error:
                failure = failure or error
        if failure is None:
            self._leave_frozen()
        self.begin_step()
        return failure, changed

    def begin_step(self) -> None:
        for bucket in self._buckets:
            bucket.core = None
            bucket.passes_left = self._settings.passes
            bucket.note_versions()

    def _leave_frozen(self) -> None:
        """A parameter that no rank trains has no gradient, so that the optimizer leaves it."""
        for bucket in self._buckets:
            for param, view in zip(bucket.params, bucket.views):
                if not param.requires_grad and not view.any():
                    param.grad = None


def _hook_of(shared: SharedGradients, bucket: _Bucket) -> Callable[[Any], None]:
    """A parameter keeps its hook, which is not to keep the memory of all."""
    owner, place = weakref.ref(shared), weakref.ref(bucket)

    def on_ready(_: Any) -> None:
        shared, bucket = owner(), place()
        if shared is not None and bucket is not None:
            shared._on_ready(bucket)

    return on_ready


def _changed_in(bucket: _Bucket) -> str | None:
    """The name of a gradient that was changed since it was handed over."""
    for gradient, view, before in zip(bucket.gradients, bucket.views, bucket.versions):
        if view._version != before or gradient.param.grad is not view:
            return gradient.name
    return None


TOO_MANY = (
    'the gradient of "{name}" was computed once more while the last one was being reduced. Call '
    "optimizer.step() after each backward pass, or say in backward_passes_per_step how many there "
    "are for each step. With reentrant checkpointing a parameter that is used in two pieces counts "
    "twice: use torch.utils.checkpoint with use_reentrant=False"
)
HAS_GRAPH = (
    'the gradient of "{name}" has a graph of its own (create_graph=True), which a reduction in '
    "place would break; use torch.autograd.grad() for gradients that are differentiated again"
)
