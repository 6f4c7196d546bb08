# SPDX-License-Identifier: Apache-2.0
"""Small gradients that come close together are handed over by one hook.

Calling a hook costs more than submitting a small gradient. Steps repeat:
where gradients have come in the same order several times, those that came within
a moment of each other form a bundle. Only the last of a bundle keeps its hook,
which brings the others.

Whether those are whole is not taken for granted. The first gradient of a step,
which is in no bundle, looks whether all others are still to come; what is there
when the last of a bundle comes, autograd has written in between. Anything else (an
order that changes, a parameter that is not used, gradients that are kept from the
last step) leaves gradients to the end of the step, which hands over whatever is left,
and ends all bundles. They are formed again after twice as many steps.

A program that writes gradients itself during a step, or computes some of them once
more, may change what is being reduced. That is seen at the end of the step, and the
bundles are ended for long: with a hook each the next time is an error.
"""

from __future__ import annotations

from typing import Callable

from .gradients import Gradient

__all__ = ["Bundles"]

#: Hooks of fewer cost nothing to speak of.
FEWEST = 64
#: What a bundle spans at most, in the step after which it is formed.
SPAN_NS = 250_000
BUNDLE_BYTES = 64 << 10
#: The same on a GPU, where each time something is submitted costs an event of the driver, which
#: takes several times as long as a hook, and each batch costs launches and copies.
GPU_SPAN_NS = 2_000_000
GPU_BUNDLE_BYTES = 4 << 20
#: Bundles form after this many steps in the same order.
PATIENCE = 3
MOST_PATIENCE = 1024


class Bundles:
    """Of the gradients of one reducer, which hooks them as it is told."""

    def __init__(self, hook: Callable[[Gradient], None]) -> None:
        self._hook = hook
        self._order: list[Gradient] = []  # of the last step
        self._alike = 0  # steps in this order
        self._patience = PATIENCE
        self._leaders: list[Gradient] = []
        self._brought: list[Gradient] = []  # those without a hook

    def note(self, sent: list[Gradient]) -> None:
        """A step has ended, in which these were handed over by hooks, in this order."""
        if self._brought or len(sent) < FEWEST:
            return
        if sent != self._order:
            self._order = list(sent)
            self._alike = 0
        self._alike += 1
        if self._alike >= self._patience:
            self._form()

    def dissolve(self, is_for_long: bool = False) -> None:
        """Each gradient has a hook of its own again."""
        for gradient in self._leaders:
            gradient.lead(None, None)
        for gradient in self._brought:
            self._hook(gradient)
        if self._brought:
            self._wait_longer()
        if is_for_long:
            self._patience = MOST_PATIENCE
        self._leaders, self._brought = [], []
        self._order, self._alike = [], 0

    def _form(self) -> None:
        first, *others = self._order
        for bundle in _bundles_of(others):
            *brought, leader = bundle
            leader.lead(tuple(brought), None)
            self._leaders.append(leader)
            self._brought += brought
        for gradient in self._brought:
            gradient.hook.remove()
            gradient.hook = None
        if self._brought:
            first.lead(None, tuple(self._brought))
            self._leaders.append(first)
        else:
            self._wait_longer()  # none are small and near
        self._alike = 0

    def _wait_longer(self) -> None:
        self._patience = min(2 * self._patience, MOST_PATIENCE)


def _limits(gradient: Gradient) -> tuple[int, int]:
    """Nanoseconds and bytes of a bundle that begins with this one."""
    return (GPU_SPAN_NS, GPU_BUNDLE_BYTES) if gradient.param.is_cuda else (SPAN_NS, BUNDLE_BYTES)


def _bundles_of(gradients: list[Gradient]) -> list[list[Gradient]]:
    """Neighbours, as long as they are small and near; those that stand alone are left out.

    The leader marks where its stream is, so all are written by that one.
    """
    bundles: list[list[Gradient]] = []
    span = free = 0
    for gradient in gradients:
        first = bundles[-1][0] if bundles else gradient
        size = gradient.param.numel() * gradient.param.element_size()
        if (
            not bundles
            or size > free
            or gradient.came_ns - first.came_ns > span
            or gradient.stream != first.stream
        ):
            bundles.append([])
            span, free = _limits(gradient)
        bundles[-1].append(gradient)
        free -= size
    return [bundle for bundle in bundles if len(bundle) > 1]
