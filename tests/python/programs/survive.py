# SPDX-License-Identifier: Apache-2.0
"""Rank 1 fails in step 3, by a signal or an exception; the others may save first."""

import os
import signal
import sys
import time

import rueda.torch as hvd
import torch

hvd.init()
try:
    for step in range(1000):
        hvd.allreduce(torch.ones(4), name="g")
        if step == 3 and hvd.rank() == 1:
            if sys.argv[1] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("my loss is NaN")
except hvd.HorovodInternalError:
    if sys.argv[1] == "save":
        time.sleep(1.5)
        print("saved", hvd.rank(), flush=True)
    raise
