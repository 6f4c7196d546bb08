# SPDX-License-Identifier: Apache-2.0
"""One rank with a GPU and the back end rueda of torch.distributed: python gpu_c10d.py.

Every call on tensors of the GPU is compared with the same call on the CPU; DDP with its
training over Gloo. Ends well only if everything is right.
"""

from __future__ import annotations

from typing import Any, Callable

import rueda.torch.c10d  # noqa: F401 -- registers the back end
import torch
import torch.distributed as dist

Tensor = torch.Tensor
COUNT = 12


def numbers(dtype: torch.dtype = torch.float32) -> Tensor:
    return (torch.arange(COUNT) + 100 * dist.get_rank()).to(dtype)


def both(run: Callable[[Tensor], Any], dtype: torch.dtype = torch.float32) -> None:
    """The same on GPU and CPU; what run() returns, or changes, is alike."""
    near, far = numbers(dtype), numbers(dtype).cuda()
    wanted, got = run(near), run(far)
    for a, b in zip(flat([wanted, near]), flat([got, far])):
        assert b.is_cuda and torch.equal(b.cpu(), a), (run, a, b)


def flat(values: Any) -> list[Tensor]:
    if isinstance(values, Tensor):
        return [values]
    return [one for value in values or () for one in flat(value)]


def reductions() -> None:
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MIN, dist.ReduceOp.MAX):
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            if op != dist.ReduceOp.AVG or dtype.is_floating_point:
                both(lambda x: dist.all_reduce(x, op=op), dtype)  # noqa: B023
    both(lambda x: dist.all_reduce(x, op=dist.ReduceOp.BOR), torch.int32)
    both(lambda x: dist.all_reduce(x.view(3, 4).t()))
    both(lambda x: dist.reduce(x, 0))

    def scatter(x: Tensor) -> Tensor:
        share = x.new_empty(COUNT // dist.get_world_size())
        dist.reduce_scatter_tensor(share, x)
        return share

    both(scatter)


def moves() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    both(lambda x: dist.broadcast(x, size - 1))

    def gather(x: Tensor) -> Any:
        one = x.new_empty(size * COUNT)
        dist.all_gather_into_tensor(one, x)
        uneven = [x.new_empty(i + 1) for i in range(size)]
        dist.all_gather(uneven, x[: rank + 1].clone())
        rows = [torch.empty_like(x) for _ in range(size)] if rank == 0 else None
        dist.gather(x, rows)
        return one, uneven, rows

    both(gather)

    def exchange(x: Tensor) -> Any:
        equal = torch.empty_like(x)
        dist.all_to_all_single(equal, x)
        given = [1] * (size - 1) + [COUNT - size + 1]
        got = [given[rank]] * size
        uneven = x.new_empty(sum(got))
        dist.all_to_all_single(uneven, x, got, given)
        return equal, uneven

    both(exchange)

    def scatter(x: Tensor) -> Tensor:
        mine = torch.empty_like(x)
        dist.scatter(mine, [x + i for i in range(size)] if rank == 0 else None)
        return mine

    both(scatter)

    def message(x: Tensor) -> Tensor:
        got = torch.empty_like(x)
        wait = dist.irecv(got, (rank - 1) % size)
        dist.send(x, (rank + 1) % size)
        wait.wait()
        return got

    both(message)


def late() -> None:
    """A tensor is read when its stream has written it, and not before."""
    stream = torch.cuda.Stream()
    far = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        far.fill_(dist.get_rank() + 1)
        work = dist.all_reduce(far, async_op=True)
        work.wait()
        size = dist.get_world_size()
        assert (far == size * (size + 1) / 2).all()


def losses(group: Any) -> list[float]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
    ).cuda()
    ddp = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    torch.manual_seed(1 + dist.get_rank())
    inputs = torch.randn(16, 32, device="cuda")
    found = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (ddp(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def training() -> None:
    gloo = dist.new_group(backend="gloo")
    ours, theirs = losses(None), losses(gloo)
    assert ours[-1] < ours[0]
    for a, b in zip(ours, theirs):
        assert abs(a - b) <= 1e-4 * abs(b), (a, b)


def main() -> None:
    dist.init_process_group("rueda")
    torch.cuda.set_device(0)
    for case in (reductions, moves, late, training):
        case()
    dist.destroy_process_group()


main()
