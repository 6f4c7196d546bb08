# SPDX-License-Identifier: Apache-2.0
"""Rank 1 dies while the others wait for it: in a work, in backward of DDP, or in FSDP."""

import os
import sys

import rueda.torch.c10d  # noqa: F401 -- registers the back end
import torch
import torch.distributed as dist

dist.init_process_group("rueda")
net: torch.nn.Module = torch.nn.Linear(4, 6)
if sys.argv[1] == "fsdp":
    from torch.distributed.fsdp import fully_shard

    fully_shard(net)
else:
    net = torch.nn.parallel.DistributedDataParallel(net)
loss = net(torch.ones(2, 4)).sum()
if dist.get_rank() == 1:
    os.kill(os.getpid(), 9)
try:
    if sys.argv[1] in ("backward", "fsdp"):
        loss.backward()
    elif sys.argv[1] == "any source":
        dist.recv(torch.zeros(1))
    else:
        dist.barrier()
except RuntimeError as error:
    print(f"told: {error}", flush=True)
    os._exit(3)
