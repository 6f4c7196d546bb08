# SPDX-License-Identifier: Apache-2.0
"""SyncBatchNorm is the batch normalisation of one process with all batches."""

from __future__ import annotations

import copy
from typing import Any

from rank_cases import cases_of, run_cases

try:
    import torch
    from torch import nn
except ImportError:
    torch = None  # type: ignore[assignment]
else:
    import rueda.torch as hvd
    from test_torch_optimizer import raises


def batches(shapes: list[tuple[int, ...]], dtype: Any) -> list[Any]:
    """One for each rank, far from zero, where sums of squares lose digits."""
    generator = torch.Generator().manual_seed(7)
    return [100 + torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def check_like_one_process(
    local: Any, shapes: list[tuple[int, ...]], tolerance: float, dtype: Any = None, steps: int = 2,
    **options: Any,
) -> None:  # fmt: skip
    """Outputs, running statistics and gradients of a step or two."""
    dtype = dtype or torch.float32
    whole = local(shapes[0][1], **options).to(dtype)
    mine = hvd.SyncBatchNorm(shapes[0][1], **options).to(dtype)
    for parameter in (*whole.parameters(), *mine.parameters()):
        with torch.no_grad():
            parameter.copy_(torch.arange(parameter.numel()) + 0.5)
    close = {"rtol": tolerance, "atol": tolerance}
    rows = [shape[0] for shape in shapes]
    for _ in range(steps):
        inputs = batches(shapes, dtype)
        x = inputs[hvd.rank()].clone().requires_grad_()
        all_x = torch.cat(inputs).requires_grad_()
        y, all_y = mine(x), whole(all_x)
        torch.testing.assert_close(y, all_y.split(rows)[hvd.rank()], **close)
        weights = torch.arange(all_y.numel(), dtype=dtype).reshape(all_y.shape).sin()
        (all_y * weights).sum().backward()
        (y * weights.split(rows)[hvd.rank()]).sum().backward()
        torch.testing.assert_close(x.grad, all_x.grad.split(rows)[hvd.rank()], **close)
    for name, value in whole.named_buffers():
        torch.testing.assert_close(dict(mine.named_buffers())[name], value, **close)
    for one, two in zip(mine.parameters(), whole.parameters()):
        total = hvd.allreduce(one.grad, op=hvd.Sum)
        torch.testing.assert_close(total, two.grad, rtol=10 * tolerance, atol=10 * tolerance)


def shapes_of(*rest: int) -> list[tuple[int, ...]]:
    """Batches of different sizes."""
    return [(4 + 3 * rank, *rest) for rank in range(hvd.size())]


def case_it_is_like_batch_norm_of_all_batches() -> None:
    check_like_one_process(nn.BatchNorm1d, shapes_of(5), 2e-3)
    check_like_one_process(nn.BatchNorm1d, shapes_of(5, 6), 2e-3)
    check_like_one_process(nn.BatchNorm2d, shapes_of(3, 4, 5), 2e-3)
    check_like_one_process(nn.BatchNorm3d, shapes_of(2, 3, 2, 2), 2e-3)


def case_in_double_precision_it_is_the_same() -> None:
    check_like_one_process(nn.BatchNorm2d, shapes_of(3, 4, 5), 1e-9, torch.float64)


def case_options_mean_the_same() -> None:
    for options in (
        {"affine": False},
        {"momentum": None},
        {"track_running_stats": False},
        {"eps": 0.5, "momentum": 0.9},
    ):
        check_like_one_process(nn.BatchNorm1d, shapes_of(5), 1e-9, torch.float64, **options)


def case_a_rank_may_have_no_rows() -> None:
    shapes = [(6 if rank == 0 else 0, 3) for rank in range(hvd.size())]
    check_like_one_process(nn.BatchNorm1d, shapes, 1e-9, torch.float64)


def case_without_any_rows_the_statistics_stay() -> None:
    norm = hvd.SyncBatchNorm(3)
    assert norm(torch.zeros(0, 3)).shape == (0, 3)
    assert torch.equal(norm.running_mean, torch.zeros(3))
    assert torch.equal(norm.running_var, torch.ones(3))


def case_evaluation_uses_the_running_statistics_and_no_other_rank() -> None:
    norm = hvd.SyncBatchNorm(3)
    norm(torch.randn(4, 3))
    norm.eval()
    if hvd.rank() == 0:
        x = torch.randn(4, 3)
        want = nn.functional.batch_norm(
            x, norm.running_mean, norm.running_var, norm.weight, norm.bias, False, 0.0, norm.eps
        )
        torch.testing.assert_close(norm(x), want)


def case_inputs_of_one_dimension_are_refused() -> None:
    raises(ValueError, lambda: hvd.SyncBatchNorm(3)(torch.zeros(3)))


def case_other_numbers_of_channels_are_refused() -> None:
    raises(ValueError, lambda: hvd.SyncBatchNorm(3)(torch.zeros(2, 1)), "3 channels")
    raises(ValueError, lambda: hvd.SyncBatchNorm(3)(torch.zeros(2, 5)), "3 channels")


def case_gradients_of_its_gradients_are_refused() -> None:
    x = torch.randn(4, 3, requires_grad=True)
    y = hvd.SyncBatchNorm(3)(x)
    (first,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    raises(RuntimeError, lambda: first.sum().backward(), "once_differentiable")


def case_copies_work() -> None:
    twin = copy.deepcopy(hvd.SyncBatchNorm(3))
    assert twin(torch.randn(4, 3)).shape == (4, 3)
    assert "process_set" not in twin.__dict__


def case_half_precision_keeps_its_type() -> None:
    norm = hvd.SyncBatchNorm(3)
    x = torch.randn(8, 3).bfloat16().requires_grad_()
    y = norm(x)
    y.float().sum().backward()
    assert y.dtype == x.grad.dtype == torch.bfloat16


test_case = cases_of(__name__)

if __name__ == "__main__":
    run_cases(globals())
