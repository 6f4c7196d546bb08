# SPDX-License-Identifier: Apache-2.0
"""One rank: torch.distributed with tensors that say they are on a GPU (far_tensors.py).

Ends well only if every result is right.
"""

from __future__ import annotations

import rueda.torch.c10d  # noqa: F401 -- registers the back end
import torch
import torch.distributed as dist
from far_tensors import Driver, Far, pretend

COUNT = 1000


def main() -> None:
    dist.init_process_group("rueda")
    rank, size = dist.get_rank(), dist.get_world_size()
    driver = Driver()
    pretend()
    numbers = torch.arange(COUNT, dtype=torch.float32)
    total = size * numbers + sum(range(size))

    far = Far.put(driver, numbers + rank)
    work = dist.all_reduce(far, async_op=True)
    assert work is not None
    work.wait()
    assert torch.equal(far.cpu(), total)

    near = numbers + rank  # those of the CPU take another way, in an order of their own
    dist.all_reduce(near)
    assert torch.equal(near, total)

    # torch asks the GPU in its own functions of these.
    group = dist.group.WORLD
    assert group is not None
    cast = Far.put(driver, numbers + 100 * rank)
    group.broadcast(cast, root=size - 1).wait()
    assert torch.equal(cast.cpu(), numbers + 100 * (size - 1))

    rows = Far.put(driver, torch.zeros(size * COUNT))
    group.all_gather_single(rows, Far.put(driver, numbers + rank)).wait()
    assert torch.equal(rows.cpu(), torch.cat([numbers + i for i in range(size)]))

    share = Far.put(driver, torch.zeros(COUNT))
    whole = Far.put(driver, torch.cat([numbers * (i + 1) + rank for i in range(size)]))
    group.reduce_scatter_single(share, whole).wait()
    assert torch.equal(share.cpu(), size * numbers * (rank + 1) + sum(range(size)))

    dist.destroy_process_group()


main()
