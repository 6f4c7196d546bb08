# SPDX-License-Identifier: Apache-2.0
"""One rank ends in some way while the others wait for it."""

import ctypes
import os
import signal
import sys
import time

import rueda

library, ctx, x = ctypes.CDLL(rueda.get_library()), ctypes.c_void_p(), ctypes.c_float(1)
library.rueda_error.restype = ctypes.c_char_p
if library.rueda_init(None, ctypes.byref(ctx)) != 0:
    sys.exit(1)
one, rank, way = ctypes.c_size_t(1), library.rueda_rank(ctx), os.environ["WAY"]


def add():
    return library.rueda_allreduce(ctx, ctypes.byref(x), ctypes.byref(x), one, 7, 0)


if way != "first" and add() != 0:
    sys.exit(2)
if rank == int(os.environ["VICTIM"]):
    time.sleep(0.3)
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    library.rueda_fail(ctx, b"ValueError: the loss is NaN")
    add()
    sys.exit(3)
began = time.monotonic()
status = add()
print(status, time.monotonic() - began, library.rueda_error(ctx).decode())
library.rueda_shutdown(ctx)
