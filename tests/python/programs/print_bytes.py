# SPDX-License-Identifier: Apache-2.0
"""Prints one line of more than 10 MB with every byte that a line can have."""

import sys

line = bytes(byte for byte in range(256) if byte not in b"\r\n") * 41000
sys.stdout.buffer.write(line + b"\n")
