# SPDX-License-Identifier: Apache-2.0
"""The optimizer for Adasum, which adds up not gradients, but what they lead to.

Each rank takes a step of its own from the common starting point. How far that
went, its delta, is reduced by Adasum for each parameter, and the common sum is
added to the starting point. So momentum and the like are applied before the
reduction, and the sum is as long as the ranks' directions are different.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from . import mpi_ops
from .mpi_ops import Adasum
from .optimizer import _Distributed
from .reducer import Reducer

__all__ = ["DeltaOptimizer"]


class DeltaOptimizer(_Distributed):
    """In front of an optimizer's own methods, for Adasum."""

    def _distribute(self, options: dict[str, Any]) -> None:
        super()._distribute(options)
        self._starts: dict[torch.Tensor, torch.Tensor] = {}
        for param in self._reduced():
            if param.grad is None:
                param.grad = torch.zeros_like(param)

    def _make_reducer(self) -> Reducer | None:
        return None  # gradients stay with their rank

    def _reduced(self) -> list[torch.Tensor]:
        return [p for group in self.param_groups for p in group["params"] if p.requires_grad]

    def synchronize(self) -> None:
        """There is nothing to wait for before the step."""

    def skip_synchronize(self) -> Any:
        """Not for Adasum, whose step does not end before its reduction."""
        raise AssertionError("skip_synchronize() is not for an optimizer with op=Adasum")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step on this rank, then by the sum of all ranks' steps instead."""
        params = self._reduced()
        with torch.no_grad():
            self._check_parameters()
            for param in params:
                start = self._starts.get(param)
                if start is None:
                    self._starts[param] = param.detach().clone()
                else:
                    start.copy_(param)
        self._tell_schedulers()
        # Past _Distributed, straight to the optimizer's own.
        loss = super(_Distributed, self).step(*(() if closure is None else (closure,)))
        with torch.no_grad():
            self._add_deltas(params)
        return loss

    step.hooked = True  # type: ignore[attr-defined]

    def _add_deltas(self, params: list[torch.Tensor]) -> None:
        in_flight = []
        for param in params:
            start = self._starts[param]
            delta, context = self._compression.compress(param - start)
            # Should the reduction fail, this is where to begin again.
            param.copy_(start)
            handle = mpi_ops.allreduce_async_(delta, None, self._parameter_names[param], Adasum)
            in_flight.append((param, handle, context))
        for param, handle, context in in_flight:
            delta = mpi_ops.synchronize(handle)
            param.add_(self._compression.decompress(delta, context))
