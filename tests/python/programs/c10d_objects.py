# SPDX-License-Identifier: Apache-2.0
"""Two ranks pass objects by a function of torch.distributed, and say what became of them.

c10d_objects.py RANK FILE CALL
"""

import sys
from datetime import timedelta

import rueda.torch.c10d  # noqa: F401
import torch
import torch.distributed as dist

WORD = "INNOCENT!" * 3
LIMIT = timedelta(seconds=30)

rank, path, call = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def broadcast() -> object:
    found = [WORD if rank == 0 else None]
    dist.broadcast_object_list(found, src=0)
    return found


def all_gather() -> object:
    found = [None, None]
    dist.all_gather_object(found, WORD)
    return found


def gather() -> object:
    found = [None, None] if rank == 0 else None
    dist.gather_object(WORD, found, dst=0)
    return found or WORD


def scatter() -> object:
    found = [None]
    dist.scatter_object_list(found, [WORD, WORD] if rank == 0 else None, src=0)
    return found


def message() -> object:
    found = [WORD]
    if rank == 0:
        dist.send_object_list(found, dst=1)
    else:
        dist.recv_object_list(found, src=0)
    return found


def lengths() -> object:
    """The places where one object ends and the next begins; these eight bytes are a word."""
    mine = torch.tensor([int.from_bytes(b"INNOCENT", "little")])
    dist.broadcast(mine, src=0)
    return mine.numpy().tobytes().decode()


dist.init_process_group(
    "rueda", store=dist.FileStore(path, 2), rank=rank, world_size=2, timeout=LIMIT
)
try:
    print(locals()[call](), flush=True)
    dist.barrier()
except RuntimeError as error:
    print("refused:", error, flush=True)
    sys.exit(1)
dist.destroy_process_group()
