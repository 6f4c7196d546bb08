# SPDX-License-Identifier: Apache-2.0
"""Listens at an address and answers nothing until its input ends; argv: host, port."""

import socket
import sys

held = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("up", flush=True)
sys.stdin.read()
