# SPDX-License-Identifier: Apache-2.0
"""DDP by the back end, and DistributedOptimizer, on ranks of several hosts.

The key comes through torch's store; gradients="shared" has no effect.
"""

from __future__ import annotations

import rueda.torch as hvd
import rueda.torch.c10d  # noqa: F401 -- registers the back end
import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("rueda")
rank, size = dist.get_rank(), dist.get_world_size()
mean = (size + 1) / 2


def check(net: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for _ in range(5):
        optimizer.zero_grad()
        net(torch.full((1, 4), rank + 1.0)).sum().backward()
        optimizer.step()
        (weight, _) = net.parameters()
        assert torch.allclose(weight.grad, torch.full((3, 4), mean)), weight.grad


net = torch.nn.Linear(4, 3)
check(torch.nn.parallel.DistributedDataParallel(net), torch.optim.SGD(net.parameters(), 0.1))
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(net.parameters(), 0.1), net.named_parameters(), gradients="shared"
)
check(net, optimizer)
print(f"rank {rank} of {size}, {hvd.local_size()} on this host", flush=True)
dist.destroy_process_group()
