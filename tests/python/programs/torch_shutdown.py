# SPDX-License-Identifier: Apache-2.0
"""A shutdown() ends the wait of another thread; argv: allreduce or add_process_set."""

import os
import sys
import threading
import time

import horovod.torch as hvd
import torch

os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
hvd.init()


def wait():
    try:
        if sys.argv[1] == "allreduce":
            hvd.allreduce(torch.ones(1), name="never")
        else:
            hvd.add_process_set([0])
    except hvd.HorovodInternalError as error:
        print(error)


if hvd.rank() == 0:
    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.3)
    hvd.shutdown()
    thread.join(20)
    assert not thread.is_alive()
else:
    time.sleep(3)
