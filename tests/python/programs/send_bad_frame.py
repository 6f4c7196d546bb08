# SPDX-License-Identifier: Apache-2.0
"""Rank 1 sends rank 0, with which it has one stream, what no rank sends."""

import json
import os
import socket

from adding import add, ctx, library


def ends_at(host):
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            end = socket.socket(fileno=os.dup(fd))
            if end.getpeername()[0] == host and end.getpeername()[1] != int(os.environ["PORT"]):
                yield end
        except OSError:
            pass


def received(end):
    # tcpi_bytes_received; more than the handshake comes by the stream only
    return int.from_bytes(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)[128:], "little")


assert add() == 0
if library.rueda_rank(ctx) == 1:
    max(ends_at(os.environ["ADDRESS"]), key=received).send(b"\xff" * 88)
status = 0
while status == 0:
    status = add()
print(json.dumps({"status": status, "words": library.rueda_error(ctx).decode()}), flush=True)
library.rueda_shutdown(ctx)
