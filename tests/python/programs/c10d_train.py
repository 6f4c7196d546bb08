# SPDX-License-Identifier: Apache-2.0
"""Train by DDP, FSDP and a sharded optimizer, first on Gloo and then on Rueda.

    c10d_train.py FOLDER [detail]

The losses have to agree. A checkpoint that one back end writes to FOLDER is read by the
other one. With "detail" Rueda's part is as by TORCH_DISTRIBUTED_DEBUG=DETAIL, with which DDP
crashes on Gloo, in torch 2.13.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import rueda.torch.c10d  # noqa: F401 -- registers the back end
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer

try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
except ImportError:  # before torch 2.6
    fully_shard = None

STEPS = 4
RATE = 0.05


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(12, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Linear(40, 24), nn.ReLU(),
        nn.Linear(24, 5),
    )  # fmt: skip


def plain() -> nn.Module:
    """Without buffers, which FSDP does not average."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 24), nn.ReLU(),
                         nn.Linear(24, 5))  # fmt: skip


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(100 + dist.get_rank())
    for _ in range(STEPS):
        yield torch.randn(8, 12), torch.randint(5, (8,))


def train(net: nn.Module, optimizer: torch.optim.Optimizer) -> list[float]:
    """The mean loss of all ranks, after each step."""
    losses = []
    for x, y in batches():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / dist.get_world_size())
    return losses


def by_ddp() -> list[float]:
    # Small buckets, so that there are several.
    net = nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.002)
    return train(net, torch.optim.SGD(net.parameters(), RATE, momentum=0.9))


def by_ddp_in_views() -> list[float]:
    net = nn.parallel.DistributedDataParallel(
        model(), gradient_as_bucket_view=True, static_graph=True
    )
    return train(net, torch.optim.Adam(net.parameters(), RATE))


def by_ddp_with_a_hook() -> list[float]:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    net = nn.parallel.DistributedDataParallel(plain())
    net.register_comm_hook(None, default_hooks.fp16_compress_hook)
    return train(net, torch.optim.SGD(net.parameters(), RATE))


class Branches(nn.Module):
    """Each rank uses another of its parts, and both use none of the last."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(12, 16)
        self.parts = nn.ModuleList(nn.Linear(16, 5) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        part: torch.Tensor = self.parts[dist.get_rank() % 2](self.first(x))
        return part


def by_ddp_with_unused_parameters() -> list[float]:
    net = nn.parallel.DistributedDataParallel(
        Branches(), find_unused_parameters=True, bucket_cap_mb=0.001
    )
    losses = train(net, torch.optim.SGD(net.parameters(), RATE))
    unused = net.module.parts[2]
    return [*losses, unused.weight.detach().sum().item()]


def by_ddp_without_sync() -> list[float]:
    """Two passes for a step; gradients are reduced in the second."""
    net = nn.parallel.DistributedDataParallel(plain(), bucket_cap_mb=0.002)
    optimizer = torch.optim.SGD(net.parameters(), RATE)
    losses = []
    for number, (x, y) in enumerate(batches()):
        with net.no_sync() if number % 2 == 0 else nullcontext():
            nn.functional.cross_entropy(net(x), y).backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
            losses.append(sum(p.detach().sum().item() for p in net.parameters()))
    return losses


def by_ddp_with_a_join() -> list[float]:
    """Ranks have different numbers of steps."""
    net = nn.parallel.DistributedDataParallel(plain(), bucket_cap_mb=0.002)
    optimizer = torch.optim.SGD(net.parameters(), RATE)
    mine = STEPS - dist.get_rank()
    with Join([net]):
        for number, (x, y) in enumerate(batches()):
            if number < mine:
                optimizer.zero_grad()
                nn.functional.cross_entropy(net(x), y).backward()
                optimizer.step()
    return [p.detach().sum().item() for p in net.parameters()]


def by_zero() -> list[float]:
    net = nn.parallel.DistributedDataParallel(plain())
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=RATE)
    losses = train(net, optimizer)
    optimizer.consolidate_state_dict(0)
    return losses


def sharded() -> nn.Module:
    net = plain()
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(net)
    return net


def by_fully_shard() -> list[float]:
    net = sharded()
    return train(net, torch.optim.Adam(net.parameters(), RATE))


def by_hybrid_shard() -> list[float]:
    """Shards in one dimension of a mesh, and copies in the other."""
    size = dist.get_world_size()
    shape = (2, size // 2) if size > 2 else (1, size)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("copies", "shards"))
    net = plain()
    fully_shard(net[0], mesh=mesh)
    fully_shard(net, mesh=mesh)
    return train(net, torch.optim.SGD(net.parameters(), RATE))


def with_a_checkpoint(folder: str) -> list[float]:
    """What this back end saves the next one loads, and so on."""
    net = sharded()
    losses = train(net, torch.optim.SGD(net.parameters(), RATE))
    state: dict[str, Any] = {"model": net.state_dict()}
    dcp.save(state, checkpoint_id=f"{folder}/{dist.get_backend()}")
    return losses


def total(net: nn.Module) -> float:
    return sum(p.full_tensor().double().sum().item() for p in net.parameters())


def load(folder: str, backend: str) -> float:
    net = sharded()
    state = {"model": net.state_dict()}
    dcp.load(state, checkpoint_id=f"{folder}/{backend}")
    net.load_state_dict(state["model"])
    return total(net)


def on(backend: str, folder: str) -> dict[str, list[float]]:
    dist.init_process_group(backend)
    found = {
        "ddp": by_ddp(),
        "ddp in views": by_ddp_in_views(),
        "ddp with a hook": by_ddp_with_a_hook(),
        "ddp with unused parameters": by_ddp_with_unused_parameters(),
        "ddp without sync": by_ddp_without_sync(),
        "ddp with a join": by_ddp_with_a_join(),
        "zero": by_zero(),
    }
    if fully_shard is None:
        dist.destroy_process_group()
        return found
    found |= {
        "fully_shard": by_fully_shard(),
        "hybrid": by_hybrid_shard(),
        "checkpoint": with_a_checkpoint(folder),
        "loaded": [load(folder, "gloo")],
    }
    if backend == "rueda":
        dist.barrier()
        found["loaded"].append(load(folder, "rueda"))
    dist.destroy_process_group()
    return found


def main() -> None:
    torch.set_num_threads(1)
    of_gloo = on("gloo", sys.argv[1])
    if "detail" in sys.argv:
        dist.set_debug_level(dist.DebugLevel.DETAIL)
    of_rueda = on("rueda", sys.argv[1])
    for name, wanted in of_gloo.items():
        for loss, want in zip(of_rueda[name], wanted):
            assert abs(loss - want) < 1e-4 * max(1, abs(want)), (name, of_rueda[name], wanted)
    if fully_shard is not None:
        first, second = of_rueda["loaded"]
        assert abs(first - second) < 1e-4, of_rueda["loaded"]
    sys.stdout.write(f"trained {len(of_gloo)}\n")  # in one piece


if __name__ == "__main__":
    main()
