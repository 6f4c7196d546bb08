# SPDX-License-Identifier: Apache-2.0
"""Looks at every packet of its host until the number has passed, or it is ended."""

import socket
import struct

pattern = struct.pack("<f", 1.5) * 16
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
print("ready", flush=True)
while pattern not in wire.recv(1 << 17):
    pass
print("seen", flush=True)
