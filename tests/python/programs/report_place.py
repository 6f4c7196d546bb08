# SPDX-License-Identifier: Apache-2.0
"""Joins the job and says what it knows."""

import ctypes
import json
import os
import socket
import sys
import time

import rueda

library, ctx, x = ctypes.CDLL(rueda.get_library()), ctypes.c_void_p(), ctypes.c_float(1)
library.rueda_is_homogeneous.restype = ctypes.c_bool
if library.rueda_init(None, ctypes.byref(ctx)) != 0:
    sys.exit(1)
names = "rank size local_rank local_size cross_rank cross_size is_homogeneous".split()
report = {name: getattr(library, "rueda_" + name)(ctx) for name in names}


def connections():
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            end = socket.socket(fileno=os.dup(fd))
            if end.family != socket.AF_UNIX and end.getpeername():
                yield end
        except OSError:
            pass


report["early"] = len(list(connections()))
one = ctypes.c_size_t(1)
report["allreduce"] = library.rueda_allreduce(ctx, ctypes.byref(x), ctypes.byref(x), one, 7, 0)
report["sum"] = x.value
count = int(os.environ.get("NUMBERS", "300001"))
big = (ctypes.c_float * count)(*([report["rank"] + 1] * count))
sums = (ctypes.c_float * len(big))()
for _ in range(int(os.environ.get("TURNS", "1"))):
    status = library.rueda_allreduce(ctx, big, sums, ctypes.c_size_t(len(big)), 7, 0)
total = report["size"] * (report["size"] + 1) / 2
report["is_right"] = status == 0 and all(number == total for number in sums)
report["not_paced"], report["late"] = 0, len(list(connections()))
for end in connections():
    control = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    report["not_paced"] += control.rstrip(b"\0") == b"reno"
sys.stdout.write(json.dumps(report) + "\n")  # in one piece
time.sleep(float(os.environ.get("STAY_S", "0.5")))
library.rueda_shutdown(ctx)
