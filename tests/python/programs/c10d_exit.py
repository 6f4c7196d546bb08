# SPDX-License-Identifier: Apache-2.0
"""A program that ends while futures of the back end are being completed."""

from __future__ import annotations

import rueda.torch.c10d  # noqa: F401 -- registers the back end
import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("rueda", rank=0, world_size=1, store=dist.HashStore())
tensor = torch.ones(1000)
futures = [
    dist.all_reduce(tensor, async_op=True).get_future().then(lambda done: done.value())
    for _ in range(300)
]
