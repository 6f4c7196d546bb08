# SPDX-License-Identifier: Apache-2.0
"""Rank 1 loses its connection with the store while it computes."""

import ctypes
import os
import signal
import socket
import sys
import threading
import time

from adding import add, ctx, library


def must_add():
    if add() != 0:
        sys.exit(library.rueda_error(ctx).decode())


def stop(pid):
    # For a while.
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(float(os.environ["STOP_S"]), os.kill, (pid, signal.SIGCONT)).start()


def calls_store(number):
    try:
        with socket.socket(fileno=os.dup(number)) as one:
            return one.getpeername()[1] == int(os.environ["PORT"])
    except OSError:
        return False


if library.rueda_rank(ctx) == 0:
    with open(os.environ["PID_FILE"], "w") as file:
        file.write(str(os.getpid()))
must_add()
if library.rueda_rank(ctx) == 1:
    if "STOP_S" in os.environ:
        with open(os.environ["PID_FILE"]) as file:
            stop(int(file.read()))
    (store,) = filter(calls_store, map(int, os.listdir("/proc/self/fd")))
    unspecified = bytes(16)  # AF_UNSPEC: TCP sends a reset
    assert ctypes.CDLL(None).connect(store, unspecified, len(unspecified)) == 0
    time.sleep(float(os.environ["AWAY_S"]))
must_add()
must_add()
library.rueda_shutdown(ctx)
