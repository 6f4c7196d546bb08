# SPDX-License-Identifier: Apache-2.0
"""An init() that was interrupted is called again; argv: rank, and "shutdown" for one between."""

import signal
import sys
import threading
import time

import rueda.torch as hvd
import torch

if sys.argv[1] == "0":
    threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
    try:
        hvd.init()
    except KeyboardInterrupt:
        assert not hvd.is_initialized()
        if sys.argv[2] == "shutdown":
            hvd.shutdown()
else:
    time.sleep(2)
hvd.init()
print(int(hvd.allreduce(torch.tensor([1]), op=hvd.Sum)))
