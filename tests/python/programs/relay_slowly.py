# SPDX-License-Identifier: Apache-2.0
"""Passes bytes on between a port of this host and an address, slowly."""

import socket
import sys
import threading
import time


def copy(source, target):
    while data := source.recv(65536):
        time.sleep(0.1)
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


def call():
    while True:
        try:
            return socket.create_connection((sys.argv[2], int(sys.argv[3])))
        except OSError:
            time.sleep(0.02)  # rank 0 is not there yet


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("up", flush=True)
near, far = listener.accept()[0], call()
threading.Thread(target=copy, args=(far, near)).start()
copy(near, far)
