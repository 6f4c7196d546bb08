# SPDX-License-Identifier: Apache-2.0
"""What scripts in the wild use of Horovod's optimizer that was never meant for them.

Some subclass it, submit a gradient themselves or look whether something is in flight.
What has a meaning here works; what has none raises, with words that name what to use.
"""

from __future__ import annotations

from typing import Any, Callable, NoReturn

import torch

__all__ = ["HorovodNames"]


def _no_gradient(param: torch.Tensor) -> NoReturn:
    raise ValueError(
        f"a parameter of shape {tuple(param.shape)} is not one whose gradient this optimizer "
        "reduces: it is not in its groups, or does not require a gradient"
    )


class HorovodNames:
    """Half-public names of Horovod's ``_DistributedOptimizer``, by what is here instead."""

    _reducer: Any
    backward_passes_per_step: int

    def _gradient_of(self, param: torch.Tensor) -> Any:
        if self._reducer is not None:
            for gradient in self._reducer.all_gradients:
                if gradient.param is param:
                    return gradient
        return _no_gradient(param)

    @property
    def _requires_update(self) -> set[torch.Tensor]:
        """The parameters whose gradients are reduced."""
        if self._reducer is None:
            return set()
        return {gradient.param for gradient in self._reducer.all_gradients}

    @property
    def _allreduce_delay(self) -> dict[torch.Tensor, int]:
        """Backward passes until the gradient of a parameter is reduced; 0: it is in flight.

        A copy: ``set_backward_passes_per_step()`` changes it.
        """
        if self._reducer is None:
            return {}
        found = {gradient.param: gradient.passes_left for gradient in self._reducer.gradients}
        if self._reducer.shared is not None:
            found.update((one.param, left) for one, left in self._reducer.shared.passes_left())
        return found

    @property
    def _handles(self) -> dict[torch.Tensor, tuple[Any, Any]]:
        """What is in flight, as (handle, what the compressor keeps). A copy:
        ``synchronize()`` waits for it.
        """
        if self._reducer is None:
            return {}
        found = {one.param: (one.handle, None) for one in self._reducer.fast_sent}
        for handle, gradients in self._reducer.slow_sent:
            found.update((one.param, (handle, one.context)) for one in gradients)
        if self._reducer.shared is not None:
            found.update((one.param, (core, None)) for one, core in self._reducer.shared.in_flight)
        return found

    def _allreduce_grad_async(self, param: torch.Tensor) -> tuple[Any, Any]:
        """Hand the gradient of a parameter over now; ``synchronize()`` waits for it."""
        gradient = self._gradient_of(param)
        if self._allreduce_delay[param] == 0:
            raise AssertionError(
                f'the gradient of "{gradient.name}" is in flight already; call '
                "optimizer.synchronize() first"
            )
        if param.grad is None:
            param.grad = torch.zeros_like(param)
        with torch.no_grad():
            self._reducer.hand_over(gradient)
        return self._handles.get(param, (None, None))  # a group may not be whole yet

    def _register_hooks(self) -> None:
        """Watch parameters that have begun to require a gradient. All others are watched."""
        if self._reducer is not None:
            self._reducer.wake()

    def _make_hook(self, param: torch.Tensor) -> Callable[..., None]:
        """What is called when the gradient of the parameter is whole."""
        return self._gradient_of(param)  # type: ignore[no-any-return]

    @property
    def _grad_accs(self) -> NoReturn:
        raise AttributeError(
            "_grad_accs: there are no nodes to keep here; hooks are on the parameters "
            "(torch.Tensor.register_post_accumulate_grad_hook), and _register_hooks() sets them"
        )
