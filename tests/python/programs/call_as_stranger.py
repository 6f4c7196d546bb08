# SPDX-License-Identifier: Apache-2.0
"""Calls a port as strangers do; argv: kind, address, port, and how long a flood stays."""

import socket
import struct
import sys
import time

kind, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
purpose = b"\1" if port == 4000 else b"\4"  # the store's, a stream's
hello = b"RUEDA\0\0\1" + struct.pack("<II", 2, 2) + b"\3" + purpose + bytes(2)
hello += b"n" * 32 + bytes(66)


def call():
    return socket.create_connection((host, port), timeout=5)


def read_to_end(one):
    one.settimeout(20)
    try:
        while one.recv(4096):
            pass
    except ConnectionResetError:
        pass


if kind == "wrong key":
    one = call()
    one.sendall(hello)
    one.recv(118, socket.MSG_WAITALL)
    one.sendall(bytes(32))
    read_to_end(one)
elif kind == "http":
    one = call()
    one.sendall(b"GET / HTTP/1.1\r\nHost: rank\r\n\r\n")
    read_to_end(one)
elif kind == "version":
    one = call()
    one.sendall(hello[:8] + struct.pack("<II", 9, 7) + hello[16:])
    read_to_end(one)
elif kind == "scanner":
    for _ in range(20):
        call().close()
elif kind == "silent":
    read_to_end(call())
elif kind == "one byte a second":
    one = call()
    try:
        for i in range(20):
            one.sendall(hello[i : i + 1])
            time.sleep(1)
    except (BrokenPipeError, ConnectionResetError):
        pass
elif kind == "flood":
    many = [call() for _ in range(1000)]
    time.sleep(float(sys.argv[4]))
print("done", flush=True)
