# SPDX-License-Identifier: Apache-2.0
"""A script that knows torch.distributed only: the variables of its launcher are all it needs."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
value = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(value)
print("sum", value.item())
dist.destroy_process_group()
