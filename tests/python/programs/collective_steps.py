# SPDX-License-Identifier: Apache-2.0
"""Runs one kind of collective for STEPS steps, or for ever, and says how that ended.

Each result is checked.
"""

import ctypes
import json
import os
import socket
import sys
import threading
import time

import rueda

library, ctx = ctypes.CDLL(rueda.get_library()), ctypes.c_void_p()
library.rueda_error.restype = ctypes.c_char_p
if library.rueda_init(None, ctypes.byref(ctx)) != 0:
    sys.exit(1)
rank, size, kind = library.rueda_rank(ctx), library.rueda_size(ctx), os.environ["KIND"]
count, steps = int(os.environ.get("COUNT", "1000")), int(os.environ.get("STEPS", "0"))
total, f32 = count * size, 7
ones, out = (ctypes.c_float * total)(*([rank + 1.0] * total)), (ctypes.c_float * total)()
each, whole = ctypes.c_size_t(count), ctypes.c_size_t(total)
every = sum(range(1, size + 1))
PORTS = [21000, 21001]


def ask_streams_often():
    """Have the system ask on them while nothing passes, as it does, but each second."""
    for name in os.listdir("/proc/self/fd"):
        try:
            stream = socket.socket(fileno=os.dup(int(name)))
            if stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 45:
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, int(os.environ["ASK_S"]))
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)
            stream.close()
        except OSError:
            continue  # another kind of descriptor


def turn():
    if kind == "allreduce":
        return library.rueda_allreduce(ctx, ones, out, whole, f32, 0)
    if kind == "allgather":
        return library.rueda_allgather(ctx, ones, out, each, f32)
    if kind == "broadcast":
        out[0] = 1.0 if rank == 0 else 0.0
        return library.rueda_broadcast(ctx, out, whole, f32, 0)
    if kind == "alltoall":
        return library.rueda_alltoall(ctx, ones, out, each, f32)
    if kind == "reduce_scatter":
        return library.rueda_reduce_scatter(ctx, ones, out, each, f32, 0)
    return library.rueda_barrier(ctx)


def is_right():
    first = {
        "allreduce": every,
        "allgather": 1,
        "broadcast": 1,
        "alltoall": 1,
        "reduce_scatter": every,
    }.get(kind)
    return first is None or out[0] == first


def hold_ports(seconds):
    """Have this host connect from two ports only, and take these for a while."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as file:
        file.write(f"{PORTS[0]} {PORTS[-1]}")
    held = [socket.socket() for _ in PORTS]
    for one, port in zip(held, PORTS):
        one.bind(("", port))
    time.sleep(seconds)
    for one in held:
        one.close()


done, began, last = 0, time.monotonic(), time.monotonic()
status, longest = 0, 0.0
if "LATE" in os.environ:
    print("late" if os.environ["LATE"] == str(rank) else "joined", flush=True)
if os.environ.get("LATE") == str(rank):
    time.sleep(3600)
time.sleep(float(os.environ.get("LATE_S", "0")))
if "HOLD_PORTS_S" in os.environ and rank == 0:
    threading.Thread(
        target=hold_ports, args=(float(os.environ["HOLD_PORTS_S"]),), daemon=True
    ).start()
    time.sleep(0.5)
while status == 0 and (steps == 0 or done < steps):
    status = turn()
    done += status == 0
    if status == 0 and not is_right():
        sys.exit(2)
    longest = max(longest, time.monotonic() - last)
    last = time.monotonic()
    if done == 3:
        print("going", flush=True)
    if done == 1 and "ASK_S" in os.environ:
        ask_streams_often()
    if os.environ.get("PAUSE"):
        time.sleep(float(os.environ["PAUSE"]))
print(
    json.dumps(
        {
            "status": status,
            "done": done,
            "words": library.rueda_error(ctx).decode(),
            "longest": longest,
            "ended": time.time(),
        }
    ),
    flush=True,
)
library.rueda_shutdown(ctx)
