# SPDX-License-Identifier: Apache-2.0
"""Rank 1 ends while the others wait for it; argv: "raise" or "exit".

After "exit" every rank takes its time when it has left the job.
"""

import atexit
import os
import sys
import time

if sys.argv[1] == "exit":
    atexit.register(time.sleep, 1)
os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
import horovod.torch as hvd  # noqa: E402
import torch  # noqa: E402

hvd.init()
if hvd.rank() == 1:
    if sys.argv[1] == "raise":
        raise KeyError("the cat ate it")
    sys.exit(7)
hvd.allreduce(torch.ones(1))
