# SPDX-License-Identifier: Apache-2.0
"""One rank that uses NCCL: python nccl_rank.py CASE. Ends well only if every result is right.

Each rank claims to be a host of its own (NCCL_HOSTID), so that several can share one GPU.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Callable

import rueda
import rueda.torch as hvd
import torch

Tensor = torch.Tensor

TYPES = (
    torch.uint8, torch.int8, torch.int32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
)  # fmt: skip


def numbers(count: int, dtype: torch.dtype) -> Tensor:
    """Whole ones, small enough that every sum is exact in every type."""
    torch.manual_seed(7 + hvd.rank())
    return torch.randint(1, 8, (count,)).to(dtype)


def same(far: Tensor, near: Tensor) -> None:
    assert far.is_cuda and far.dtype == near.dtype
    assert torch.equal(far.cpu(), near), f"{near.dtype}: not what the CPU has"


def every_type_and_reduction() -> None:
    for dtype in TYPES:
        for op in (hvd.Sum, hvd.Average, hvd.Min, hvd.Max, hvd.Product):
            near = numbers(1003, dtype)
            key = f"{dtype}.{op}"
            far = hvd.allreduce(near.cuda(), op=op, name=f"far.{key}")
            same(far, hvd.allreduce(near, op=op, name=f"near.{key}"))


def what_nccl_lacks() -> None:
    for dtype in (torch.int16, torch.bool):
        near = numbers(1003, dtype)
        far = hvd.allreduce(near.cuda(), op=hvd.Max, name=f"far.{dtype}")
        same(far, hvd.allreduce(near, op=hvd.Max, name=f"near.{dtype}"))


def every_kind() -> None:
    rank, size = hvd.rank(), hvd.size()
    near = torch.arange(12.0).reshape(6, 2) + 100 * rank
    far = near.cuda()
    same(hvd.broadcast(far, 1, name="b"), hvd.broadcast(near, 1, name="b.near"))
    rows = rank + 1
    same(hvd.allgather(far[:rows], name="g"), hvd.allgather(near[:rows], name="g.near"))
    same(hvd.allgather(far, name="e"), hvd.allgather(near, name="e.near"))
    splits = torch.tensor([2] * (size - 1) + [6 - 2 * (size - 1)], dtype=torch.int32)
    same(
        hvd.alltoall(far, splits=splits, name="a")[0],
        hvd.alltoall(near, splits=splits, name="a.near")[0],
    )
    for rows in (6, 5):
        same(
            hvd.reducescatter(far[:rows], op=hvd.Sum, name=f"r.{rows}"),
            hvd.reducescatter(near[:rows], op=hvd.Sum, name=f"r.near.{rows}"),
        )


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


def sets_that_overlap() -> None:
    """Each rank submits in an order of its own."""
    pairs = [hvd.add_process_set([a, b]) for a, b in ((0, 1), (1, 2), (0, 2))]
    sets = [*pairs, hvd.global_process_set]
    for step in range(20):
        waiting = []
        for i in range(len(sets)):
            k = (i + hvd.rank() + step) % len(sets)
            if not sets[k].included():
                continue
            far = torch.full((1 << 16,), float(hvd.rank() + 1), device="cuda")
            handle = hvd.allreduce_async_(far, op=hvd.Sum, name=f"s.{k}", process_set=sets[k])
            waiting.append((k, handle))
        for k, handle in waiting:
            wanted = (3, 5, 4, 6)[k]
            assert (hvd.synchronize(handle) == wanted).all(), (step, k)


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


def metrics() -> None:
    told = rueda.metrics()
    assert told["gpu_error"] == "", told
    gpu = told["gpus"][0]
    print(gpu)
    assert gpu["name"] == torch.cuda.get_device_name(0)
    assert gpu["memory_total_bytes"] >= torch.cuda.get_device_properties(0).total_memory
    assert 0 < gpu["memory_used_bytes"] < gpu["memory_total_bytes"]
    assert gpu["power_watts"] is None or 0 < gpu["power_watts"] < 2000


def a_death() -> None:
    """Rank 1 of three is killed while NCCL runs; the others go on in a job of two."""
    far = torch.ones(16 << 20, device="cuda")
    hvd.allreduce_(far, op=hvd.Sum, name="before")
    assert (far == 3).all()
    words = ""
    try:
        for i in range(1000):
            if hvd.rank() == 1 and i == 5:
                hvd.allreduce_async_(far, op=hvd.Average, name=f"busy.{i}")
                time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGKILL)
            hvd.allreduce_(far, op=hvd.Average, name=f"busy.{i}")
    except hvd.HorovodInternalError as error:
        words = str(error)
    assert "rank 1" in words, words
    begin = time.monotonic()
    rank = hvd.rank() // 2
    hvd.shutdown()
    os.environ.update(
        RUEDA_RANK=str(rank), RUEDA_SIZE="2", RUEDA_LOCAL_RANK=str(rank), RUEDA_LOCAL_SIZE="2",
        RUEDA_JOB=os.environ["RUEDA_JOB"] + "-again",
    )  # fmt: skip
    hvd.init()
    again = torch.full((1 << 20,), 5.0, device="cuda")
    assert (hvd.allreduce(again, op=hvd.Sum, name="again") == 10).all()
    print(f"AGAIN after {time.monotonic() - begin:.2f} s", flush=True)


def main() -> None:
    case: Callable[[], None] = globals()[sys.argv[1]]
    hvd.init()
    torch.cuda.set_device(0)
    case()
    hvd.shutdown()


main()
