#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Somebody on the way between two hosts, who has no key and changes what passes.

    meddler.py left right OLD=NEW...

takes the place of a bridge between two interfaces: it passes every frame on, and
where the bytes of a TCP segment hold OLD it puts NEW, of the same length, and
mends the checksum. Both are hexadecimal. It says "ready", and "changed" for each
segment that it has changed. A pair ``flip:PORT:COUNT=`` changes one bit of the
first segment to that port after this many bytes of a connection.
"""

from __future__ import annotations

import select
import socket
import struct
import sys

ETHERNET = 14
ALL = 3  # ETH_P_ALL
OUTGOING = 4  # PACKET_OUTGOING


def checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Meddler:
    """What is to be changed, and how far the connections have come."""

    def __init__(self, words: list[str]) -> None:
        self.pairs: list[tuple[bytes, bytes]] = []
        self.flips: list[tuple[int, int]] = []
        self.seen: dict[tuple[bytes, int], int] = {}
        for word in words:
            old, new = word.split("=")
            if old.startswith("flip:"):
                port, count = old[len("flip:") :].split(":")
                self.flips.append((int(port), int(count)))
            else:
                self.pairs.append((bytes.fromhex(old), bytes.fromhex(new)))

    def change(self, payload: bytes, source: bytes, from_port: int, to_port: int) -> bytes:
        for old, new in self.pairs:
            payload = payload.replace(old, new)
        way = (source, from_port)
        before = self.seen.get(way, 0)
        self.seen[way] = before + len(payload)
        for flip in list(self.flips):
            if flip[0] == to_port and before >= flip[1]:
                self.flips.remove(flip)
                payload = payload[:-1] + bytes([payload[-1] ^ 1])
        return payload

    def pass_on(self, frame: bytes) -> bytes:
        """Return the frame, changed or not, with a checksum that is right."""
        if frame[12:14] == b"\x08\x00":
            start = ETHERNET + (frame[ETHERNET] & 15) * 4
            end = ETHERNET + struct.unpack("!H", frame[16:18])[0]
            addresses, protocol = frame[26:34], frame[23]
        elif frame[12:14] == b"\x86\xdd":
            start = ETHERNET + 40
            end = start + struct.unpack("!H", frame[18:20])[0]
            addresses, protocol = frame[22:54], frame[20]
        else:
            return frame
        if protocol != socket.IPPROTO_TCP:
            return frame
        segment = bytearray(frame[start:end])
        from_port, to_port = struct.unpack("!HH", segment[:4])
        data = (segment[12] >> 4) * 4
        payload = bytes(segment[data:])
        if payload:
            changed = self.change(payload, addresses, from_port, to_port)
            if changed != payload:
                print("changed", flush=True)
            segment[data:] = changed
        segment[16:18] = b"\0\0"
        pseudo = addresses + struct.pack("!II", len(segment), protocol)
        segment[16:18] = struct.pack("!H", checksum(pseudo + bytes(segment)))
        return frame[:start] + bytes(segment)


def main(words: list[str]) -> None:
    sides = []
    for name in words[:2]:
        side = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(ALL))
        side.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        side.bind((name, 0))
        sides.append(side)
    other = {sides[0]: sides[1], sides[1]: sides[0]}
    meddler = Meddler(words[2:])
    print("ready", flush=True)
    while True:
        for side in select.select(sides, [], [])[0]:
            frame, where = side.recvfrom(1 << 17)
            if where[2] == OUTGOING:
                continue
            try:
                other[side].send(meddler.pass_on(frame))
            except OSError:
                pass  # a link that is down, or a frame that is too long: lost


if __name__ == "__main__":
    main(sys.argv[1:])
