# SPDX-License-Identifier: Apache-2.0
"""Rank 0 waits for rank 1, which does not come; argv: allreduce or add_process_set."""

import os
import sys
import time

import horovod.torch as hvd
import torch

os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
hvd.init()
print("waiting", flush=True)
if hvd.rank() == 1:
    time.sleep(60)
if sys.argv[1] == "allreduce":
    hvd.allreduce(torch.ones(1))
else:
    hvd.add_process_set([0])
