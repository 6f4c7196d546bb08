# SPDX-License-Identifier: Apache-2.0
"""One rank with a GPU: python gpu_rank.py CASE. Ends well only if every result is right.

Results are compared with those of the same tensors on the CPU, bit by bit.
"""

from __future__ import annotations

import sys
from typing import Callable

import rueda.torch as hvd
import torch

Tensor = torch.Tensor

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SLEEP_CYCLES = 200_000_000  # about a tenth of a second


def numbers(count: int, dtype: torch.dtype) -> Tensor:
    torch.manual_seed(7 + hvd.rank())
    if dtype.is_floating_point:
        return torch.randn(count).to(dtype)
    return torch.randint(0, 11, (count,)).to(dtype)


def same(far: Tensor, near: Tensor) -> None:
    assert far.is_cuda and far.dtype == near.dtype
    assert torch.equal(far.cpu(), near), f"{near.dtype}: not what the CPU has"


def every_type_and_reduction() -> None:
    for dtype in (*INTEGERS, *FLOATS, torch.bool):
        for op in (hvd.Sum, hvd.Average, hvd.Min, hvd.Max, hvd.Product):
            if dtype is torch.bool and op == hvd.Average:
                continue
            near = numbers(1003, dtype)
            key = f"{dtype}.{op}"
            far = hvd.allreduce(near.cuda(), op=op, name=f"far.{key}")
            same(far, hvd.allreduce(near, op=op, name=f"near.{key}"))


def every_kind() -> None:
    rank, size = hvd.rank(), hvd.size()
    near = torch.arange(12.0).reshape(6, 2) + 100 * rank
    far = near.cuda()
    same(hvd.broadcast(far, 1, name="b"), hvd.broadcast(near, 1, name="b.near"))
    rows = rank + 1
    same(hvd.allgather(far[:rows], name="g"), hvd.allgather(near[:rows], name="g.near"))
    splits = torch.tensor([2] * (size - 1) + [6 - 2 * (size - 1)], dtype=torch.int32)
    same(
        hvd.alltoall(far, splits=splits, name="a")[0],
        hvd.alltoall(near, splits=splits, name="a.near")[0],
    )
    same(
        hvd.reducescatter(far, op=hvd.Sum, name="r"),
        hvd.reducescatter(near, op=hvd.Sum, name="r.near"),
    )
    same(
        hvd.allreduce(far, op=hvd.Adasum, name="d"),
        hvd.allreduce(near, op=hvd.Adasum, name="d.near"),
    )


def a_stream_that_is_late() -> None:
    stream = torch.cuda.Stream()
    far = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(SLEEP_CYCLES)
        far.fill_(hvd.rank() + 1)
        handle = hvd.allreduce_async_(far, op=hvd.Sum, name="late")
    result = hvd.synchronize(handle)
    assert (result == hvd.size() * (hvd.size() + 1) / 2).all()


def many_and_large() -> None:
    for step in range(3):
        far = [torch.full((1024,), i + step + hvd.rank() + 0.0, device="cuda") for i in range(400)]
        handles = [
            hvd.allreduce_async_(one, op=hvd.Sum, name=f"m.{i}") for i, one in enumerate(far)
        ]
        for i, handle in reversed(list(enumerate(handles))):
            wanted = hvd.size() * (i + step) + sum(range(hvd.size()))
            assert (hvd.synchronize(handle) == wanted).all()
    large = torch.arange(32 << 20, dtype=torch.int32, device="cuda") % 1000
    wanted = large * hvd.size()
    assert torch.equal(hvd.allreduce_(large, op=hvd.Sum, name="large"), wanted)


def a_capture_is_refused() -> None:
    far = torch.ones(10, device="cuda")
    graph = torch.cuda.CUDAGraph()
    words = ""
    try:
        with torch.cuda.graph(graph):
            far.add_(1)
            try:
                hvd.allreduce_async_(far, name="captured")
            except (RuntimeError, ValueError) as error:
                words = str(error)
    except RuntimeError as error:
        words = words or str(error)
    assert "capture" in words, words
    assert hvd.allreduce(torch.ones(3, device="cuda"), op=hvd.Sum, name="after")[0] == hvd.size()


def mixed_with_the_cpu() -> None:
    for i in range(10):
        far = torch.full((100,), float(i), device="cuda")
        near = torch.full((100,), float(i))
        handles = [
            hvd.allreduce_async_(far, op=hvd.Sum, name=f"far.{i}"),
            hvd.allreduce_async_(near, op=hvd.Sum, name=f"near.{i}"),
        ]
        a, b = map(hvd.synchronize, handles)
        same(a, b)


def an_optimizer() -> None:
    torch.manual_seed(hvd.rank())
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Linear(50, 1)
    ).cuda()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01), named_parameters=model.named_parameters()
    )
    losses = []
    for step in range(30):
        torch.manual_seed(1000 + step % 3)
        inputs = torch.randn(16, 20, device="cuda")
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = (model(inputs).float() - inputs.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    for name, parameter in model.named_parameters():
        mine = parameter.detach().cpu()
        first = hvd.broadcast(mine, 0, name=f"check.{name}")
        assert torch.equal(mine, first), f"{name} differs from that of rank 0"


class Rows(torch.nn.Module):
    """Many small parameters, which the optimizer hands over in bundles after some steps."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = torch.nn.ParameterList([torch.zeros(300, device="cuda") for _ in range(100)])

    def forward(self, factor: float) -> Tensor:
        return sum((factor * (i + 1) * row).sum() for i, row in enumerate(self.rows))


def bundles() -> None:
    model = Rows()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters()
    )
    mean = sum(range(1, hvd.size() + 1)) / hvd.size()
    for step in range(10):
        optimizer.zero_grad()
        model(hvd.rank() + 1.0 + step).backward()
        optimizer.synchronize()
        for i, row in enumerate(model.rows):
            assert (row.grad == (i + 1) * (mean + step)).all(), (step, i)
        with optimizer.skip_synchronize():
            optimizer.step()


def join() -> None:
    if hvd.rank() > 0:
        far = torch.full((1000,), 3.0, device="cuda")
        assert (hvd.allreduce(far, op=hvd.Sum, name="alone") == 3).all()
    hvd.join()


def main() -> None:
    case: Callable[[], None] = globals()[sys.argv[1]]
    hvd.init()
    torch.cuda.set_device(0)
    case()
    hvd.shutdown()


main()
