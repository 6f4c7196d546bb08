# SPDX-License-Identifier: Apache-2.0
"""A DDP script on Rueda: only the two marked lines know of it.

    ruedarun -np 2 python ddp.py
    torchrun --nproc-per-node 2 ddp.py
    torchrun --nproc-per-node 2 ddp.py --backend gloo     # the same losses

It learns to add up the numbers of a row.
"""

import argparse

import rueda.torch.c10d  # noqa: F401 -- the first line: "rueda" is a back end from here on
import torch
import torch.distributed as dist
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="rueda")
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group(args.backend)  # the second line
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
    net = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    torch.manual_seed(1 + dist.get_rank())  # other data on each rank
    for _ in range(args.steps):
        x = torch.rand(32, 8)
        loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.all_reduce(loss.detach_(), dist.ReduceOp.SUM)
    if dist.get_rank() == 0:
        mean = loss.item() / dist.get_world_size()
        print(f"{dist.get_world_size()} ranks, back end {args.backend}: loss {mean:.5f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
