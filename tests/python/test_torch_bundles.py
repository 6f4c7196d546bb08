# SPDX-License-Identifier: Apache-2.0
"""Small gradients that one hook brings together: the results are those of one by one."""

from __future__ import annotations

import gc
import warnings
from typing import Any, Callable

import pytest
from rank_cases import cases_of, run_cases

try:
    import torch
    from torch import nn
except ImportError:
    torch = None  # type: ignore[assignment]
else:
    import rueda.torch as hvd
    from rueda.torch import bundles

COUNT = 100


class Rows(nn.Module if torch else object):  # type: ignore[misc]
    """Many small parameters, whose gradients come from the last one to the first."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(COUNT)])

    def forward(self, factor: float, order: list[int]) -> Any:
        x = torch.zeros(3)
        for i in order:
            x = (x + self.rows[i]) * 1.01
        return factor * x.sum()


def make(**options: Any) -> tuple[Any, Any]:
    model = Rows()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.0), model.named_parameters(), **options
    )
    # Else a core that is busy elsewhere for a moment splits a bundle.
    bundles.SPAN_NS = 10**12
    return model, optimizer


def brought(optimizer: Any) -> int:
    """How many have no hook of their own."""
    return sum(gradient.hook is None for gradient in optimizer._reducer.gradients)


def expect(model: Any, factor: float, order: list[int]) -> None:
    """The average of all ranks' gradients, whose factors are rank + factor."""
    wanted = [0.0] * COUNT
    for place, i in enumerate(order):
        wanted[i] += 1.01 ** (len(order) - place)
    mean = factor + (hvd.size() - 1) / 2
    for i, row in enumerate(model.rows):
        torch.testing.assert_close(row.grad, torch.full((3,), mean * wanted[i]))


def step(model: Any, optimizer: Any, factor: float, order: list[int] | None = None) -> None:
    order = order if order is not None else list(range(COUNT))
    model(hvd.rank() + factor, order).backward()
    optimizer.step()
    expect(model, factor, order)


def steps(model: Any, optimizer: Any, count: int, to_none: bool = True) -> None:
    for i in range(count):
        optimizer.zero_grad(set_to_none=to_none)
        step(model, optimizer, i + 1.0)


def bundled() -> tuple[Any, Any]:
    model, optimizer = make()
    steps(model, optimizer, 4)
    assert brought(optimizer) == COUNT - 2, "all but the first and the last of one bundle"
    steps(model, optimizer, 4)
    assert brought(optimizer) == COUNT - 2
    optimizer.zero_grad(set_to_none=True)
    return model, optimizer


def case_steps_that_repeat() -> None:
    bundled()


def case_large_ones_stand_alone() -> None:
    model, optimizer = make()
    kept, bundles.BUNDLE_BYTES = bundles.BUNDLE_BYTES, 10 * 12
    steps(model, optimizer, 4)
    bundles.BUNDLE_BYTES = kept
    assert brought(optimizer) == COUNT - 1 - 10, "ten bundles of ten, but for the first"
    steps(model, optimizer, 2)


def case_those_that_come_far_apart_stand_alone() -> None:
    model, optimizer = make()
    bundles.SPAN_NS = -1
    steps(model, optimizer, bundles.PATIENCE)
    assert brought(optimizer) == 0
    bundles.SPAN_NS = 10**12
    steps(model, optimizer, bundles.PATIENCE)
    assert brought(optimizer) == 0, "it is tried less often"
    steps(model, optimizer, bundles.PATIENCE)
    assert brought(optimizer) > 0


def case_few_are_left_alone() -> None:
    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(10)])
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters()
    )
    for _ in range(6):
        optimizer.zero_grad(set_to_none=True)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert brought(optimizer) == 0


def case_another_order() -> None:
    model, optimizer = bundled()
    order = list(range(COUNT))
    for other in (order[::-1], order[50:] + order[:50], order):
        step(model, optimizer, 3.0, other)
        assert brought(optimizer) == 0
        optimizer.zero_grad(set_to_none=True)
    steps(model, optimizer, 4)
    assert brought(optimizer) == 0, "it takes twice as many now"
    steps(model, optimizer, 1)
    assert brought(optimizer) > 0


def case_another_order_on_one_rank() -> None:
    model, optimizer = bundled()
    order = list(range(COUNT))[:: 1 if hvd.rank() == 0 else -1]
    model(1.0, order).backward()
    optimizer.step()
    assert (brought(optimizer) == 0) == (hvd.rank() > 0)
    mean = sum(model.rows[i].grad[0] for i in range(COUNT)) / COUNT
    torch.testing.assert_close(mean, torch.tensor(sum(1.01**k for k in range(1, 101)) / 100))


def case_parameters_that_are_not_used() -> None:
    model, optimizer = bundled()
    for left_out in (0, 40, COUNT - 1):
        step(model, optimizer, 2.0, [i for i in range(COUNT) if i != left_out])
        optimizer.zero_grad(set_to_none=True)
    steps(model, optimizer, 2)


def case_gradients_that_are_kept() -> None:
    """There from the start of a step, they do not tell whether they are whole."""
    model, optimizer = bundled()
    steps(model, optimizer, 6, to_none=False)
    assert brought(optimizer) == 0


def case_gradients_that_are_replaced() -> None:
    model, optimizer = bundled()
    for row in model.rows:
        row.grad = torch.zeros(3)
    step(model, optimizer, 4.0)
    assert brought(optimizer) == 0


def case_two_passes() -> None:
    model, optimizer = bundled()
    optimizer.set_backward_passes_per_step(2)
    assert brought(optimizer) == 0
    for _ in range(5):
        optimizer.zero_grad(set_to_none=True)
        for _ in range(2):
            model(hvd.rank() + 1.0, list(range(COUNT))).backward()
        optimizer.step()
        expected = 2 * (1 + (hvd.size() - 1) / 2) * 1.01**COUNT
        torch.testing.assert_close(model.rows[0].grad, torch.full((3,), expected))
    assert brought(optimizer) == 0


def case_a_pass_too_many() -> None:
    model, optimizer = bundled()
    model(1.0, list(range(COUNT))).backward()
    with pytest.raises(AssertionError, match="was computed once more"):
        model(1.0, list(range(COUNT))).backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some were added to meanwhile
        optimizer.synchronize()
    optimizer.zero_grad(set_to_none=True)
    steps(model, optimizer, 3)


def case_some_once_more() -> None:
    """Where no hook sees it, the end of the step does, and hooks the next time."""
    for more in ({}, {"create_graph": True}):
        model, optimizer = bundled()
        model(1.0, list(range(COUNT))).backward()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            model(1.0, list(range(20, 40))).backward(**more)
            optimizer.step()
        changed = [one for one in seen if "was changed while" in str(one.message)]
        assert bool(changed) == (not more)
        assert brought(optimizer) == 0
        optimizer.zero_grad(set_to_none=True)
        model(1.0, list(range(COUNT))).backward()
        with pytest.raises(AssertionError, match="was computed once more"):
            model(1.0, list(range(20, 40))).backward()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer.synchronize()
        hvd.barrier()


def case_begun_and_left() -> None:
    """What was still to come in a step that was not ended has come by now."""
    model, optimizer = bundled()
    model.rows[COUNT - 1].grad = None
    model(1.0, [COUNT - 1]).backward()
    optimizer._reducer.reset()
    hvd.barrier()
    for row in model.rows:
        row.grad = torch.zeros(3)
    step(model, optimizer, 2.0, list(range(COUNT))[::-1])


def case_frozen_meanwhile() -> None:
    model, optimizer = bundled()
    for row in model.rows[:50]:
        row.requires_grad_(False)
    for _ in range(3):
        model(hvd.rank() + 1.0, list(range(COUNT))).backward()
        optimizer.step()
        assert all(row.grad is None for row in model.rows[:50])
        optimizer.zero_grad(set_to_none=True)
    for row in model.rows[:50]:
        row.requires_grad_(True)
    steps(model, optimizer, 3)


def case_an_optimizer_that_is_gone() -> None:
    model, optimizer = bundled()
    del optimizer
    gc.collect()
    assert not any(getattr(row, "_post_accumulate_grad_hooks", None) for row in model.rows)
    model(1.0, list(range(COUNT))).backward()
    assert float(model.rows[0].grad[0]) == pytest.approx(1.01**COUNT, rel=1e-4)


def case_slots_are_what_is_led() -> None:
    _, optimizer = make()
    gradient = optimizer._reducer.gradients[0]
    bad: list[Callable[[], None]] = [
        lambda: gradient.lead((1,), None),
        lambda: gradient.lead(None, (gradient, "x")),
        lambda: gradient.lead([gradient], None),
        lambda: gradient.lead(3, None),
        lambda: gradient.lead(),
    ]
    for call in bad:
        with pytest.raises(TypeError):
            call()
    gradient.lead(None, None)


test_case = cases_of(__name__)

if __name__ == "__main__":
    run_cases(globals())
