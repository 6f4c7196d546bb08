# SPDX-License-Identifier: Apache-2.0
"""Rank 1 dies while the others wait for it, in a work and in backward of DDP."""

import os
import sys

import rueda.torch.c10d  # noqa: F401 -- registers the back end
import torch
import torch.distributed as dist

dist.init_process_group("rueda")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
loss = net(torch.ones(2, 4)).sum()
if dist.get_rank() == 1:
    os.kill(os.getpid(), 9)
try:
    if sys.argv[1] == "backward":
        loss.backward()
    else:
        dist.barrier()
except RuntimeError as error:
    print(f"told: {error}", flush=True)
    os._exit(3)
