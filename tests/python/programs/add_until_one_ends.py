# SPDX-License-Identifier: Apache-2.0
"""Ranks add again and again, until one ends in some way and the others find out."""

import ctypes
import os
import signal
import sys
import threading
import time

import rueda

library, ctx, count = ctypes.CDLL(rueda.get_library()), ctypes.c_void_p(), 300_000
library.rueda_error.restype = ctypes.c_char_p
if library.rueda_init(None, ctypes.byref(ctx)) != 0:
    sys.exit(1)
x, way = (ctypes.c_float * count)(), os.environ["WAY"]


def add():
    return library.rueda_allreduce(ctx, x, x, ctypes.c_size_t(count), 7, 0)


if library.rueda_rank(ctx) == int(os.environ["VICTIM"]):
    how = {
        "kill": (os.kill, (os.getpid(), signal.SIGKILL)),
        "fail": (library.rueda_fail, (ctx, b"ValueError: NaN")),
        "leave": (int, ()),
    }[way]
    timer = threading.Timer(0.3, *how)
    timer.start()
    for _ in range(3 if way == "leave" else 1_000_000):
        if add() != 0:
            break
    timer.join()
    library.rueda_shutdown(ctx)
    sys.exit(3)
status = 0
while status == 0:
    began = time.monotonic()
    status = add()
print(status, time.monotonic() - began, library.rueda_error(ctx).decode())
library.rueda_shutdown(ctx)
