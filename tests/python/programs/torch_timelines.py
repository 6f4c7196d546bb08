# SPDX-License-Identifier: Apache-2.0
"""Only rank 0 starts and stops timelines; argv: two files, and one that cannot be written."""

import os
import sys
import time

import horovod.torch as hvd
import torch

first, second, bad = sys.argv[1:]
hvd.init()
hvd.shutdown()
os.environ["HOROVOD_TIMELINE"] = "DYNAMIC"  # read by the next init()
hvd.init()
hvd.stop_timeline()
if hvd.rank() == 0:
    hvd.start_timeline(first)
hvd.allreduce(torch.ones(1), name="one")
if hvd.rank() == 0:
    hvd.start_timeline(second, mark_cycles=True)
    hvd.start_timeline(second)
    try:
        hvd.start_timeline(bad)
    except ValueError as error:
        print(error)
else:
    hvd.start_timeline(bad)
hvd.allreduce(torch.ones(1), name="two")
if hvd.rank() == 0:
    hvd.stop_timeline()
    hvd.stop_timeline()
    print("stopped")
else:
    time.sleep(1)
hvd.barrier()
hvd.shutdown()
for call in (lambda: hvd.start_timeline(first), hvd.stop_timeline):
    try:
        call()
    except ValueError:
        print("refused")
