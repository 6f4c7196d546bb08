#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Somebody on the way between two hosts, who has no key and changes what passes.

    meddler.py left right RULE...

takes the place of a bridge between two interfaces and passes every frame on. It
says "ready", and then one word for each thing that it does. The rules:

    OLD=NEW               in a TCP segment put NEW in the place of OLD, both of the
                          same length and in hexadecimal: "changed"
    flip:PORT:COUNT=      change one bit of a segment to that port, after this many
                          bytes of a connection: "changed"
    drop:PORT:COUNT=      leave a segment out of the stream of bytes: "dropped"
    cut:PORT:COUNT=       leave the second half of a segment out: "cut"
    replay:PORT:COUNT=    have a segment come twice in the stream: "replayed"
    swap:PORT:COUNT=      exchange a segment and the next one: "swapped"
    forget:SECONDS=       as a firewall, drop the packets of a connection that has
                          carried nothing for this time: "forgot" for each of them

PORT 0 is any port. Of drop, cut, replay and swap, each happens once, and neither
TCP notices: the numbers of what follows, and of what is confirmed, are changed to
fit. So what is tried is what checks the bytes, not what transports them.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import time

ETHERNET = 14
ALL = 3  # ETH_P_ALL
OUTGOING = 4  # PACKET_OUTGOING
SYN, ACK = 2, 16
SACK_PERMITTED = 4
MOST_BYTES = 1400  # of the payload of a frame that is made here
EDITS = ("drop", "cut", "replay", "swap")
DONE = {"drop": "dropped", "cut": "cut", "replay": "replayed", "swap": "swapped"}


def checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def say(word: str) -> None:
    print(word, flush=True)


class Segment:
    """A frame that carries TCP, taken apart."""

    def __init__(self, frame: bytes, start: int, end: int, addresses: bytes) -> None:
        self.head = frame[:start]
        self.addresses = addresses
        data = start + (frame[start + 12] >> 4) * 4
        self.tcp = bytearray(frame[start:data])
        self.payload = frame[data:end]
        self.source, self.target, self.number, self.confirmed = struct.unpack(
            "!HHII", self.tcp[:12]
        )
        self.flags = self.tcp[13]

    @property
    def way(self) -> tuple[bytes, int, int]:
        return self.addresses, self.source, self.target

    @property
    def way_back(self) -> tuple[bytes, int, int]:
        half = len(self.addresses) // 2
        return self.addresses[half:] + self.addresses[:half], self.target, self.source

    def refuse_sack(self) -> None:
        """What is confirmed is one number then, which can be changed."""
        at = 20
        while at < len(self.tcp) and self.tcp[at] != 0:
            if self.tcp[at] == SACK_PERMITTED:
                self.tcp[at : at + 2] = b"\1\1"
            at += 1 if self.tcp[at] == 1 else max(self.tcp[at + 1], 2)

    def frame(self, number: int, payload: bytes) -> bytes:
        """The frame, with these bytes in it and the right checksums."""
        tcp = bytearray(self.tcp)
        struct.pack_into("!II", tcp, 4, number & 0xFFFFFFFF, self.confirmed & 0xFFFFFFFF)
        tcp[16:18] = b"\0\0"
        tcp += payload
        pseudo = self.addresses + struct.pack("!II", len(tcp), socket.IPPROTO_TCP)
        tcp[16:18] = struct.pack("!H", checksum(pseudo + bytes(tcp)))
        head = bytearray(self.head)
        if len(self.addresses) == 8:
            struct.pack_into("!H", head, ETHERNET + 2, len(head) - ETHERNET + len(tcp))
            head[ETHERNET + 10 : ETHERNET + 12] = b"\0\0"
            sum_of_head = checksum(bytes(head[ETHERNET:]))
            struct.pack_into("!H", head, ETHERNET + 10, sum_of_head)
        else:
            struct.pack_into("!H", head, ETHERNET + 4, len(tcp))
        return bytes(head) + bytes(tcp)


def take_apart(frame: bytes) -> Segment | None:
    if frame[12:14] == b"\x08\x00":
        start = ETHERNET + (frame[ETHERNET] & 15) * 4
        end = ETHERNET + struct.unpack("!H", frame[16:18])[0]
        addresses, protocol = frame[26:34], frame[23]
    elif frame[12:14] == b"\x86\xdd":
        start = ETHERNET + 40
        end = start + struct.unpack("!H", frame[18:20])[0]
        addresses, protocol = frame[22:54], frame[20]
    else:
        return None
    if protocol != socket.IPPROTO_TCP:
        return None
    return Segment(frame, start, end, addresses)


class Stream:
    """The bytes of one way of a connection, some of which are replaced.

    Both count from the first byte: the sender's numbers, and those that the
    receiver is shown.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.count = 0  # bytes that were seen so far
        self.last = b""
        self.edits: list[tuple[int, int, bytes]] = []  # where, how many out, what in

    def offset(self, number: int) -> int:
        """Of a byte, which may be the one before the first."""
        return ((number - self.first + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)

    def shown(self, at: int) -> int:
        for where, out, into in reversed(self.edits):
            if at >= where + out and (out > 0 or at > where):
                at += len(into) - out
            elif at > where:
                at = where + len(into)
        return at

    def confirmed(self, at: int) -> int:
        """Of the sender's bytes, when the receiver has confirmed these."""
        for where, out, into in self.edits:
            if at >= where + len(into):
                at += out - len(into)
            elif at > where:
                at = where
        return at

    def parts(self, at: int, payload: bytes) -> list[tuple[int, bytes]]:
        """What the receiver is shown of these bytes."""
        shown: list[tuple[int, bytes]] = []
        begin, end = at, at + len(payload)
        for where, out, into in self.edits:
            if begin > where or end <= where:
                if where < begin < where + out:
                    begin = min(where + out, end)
                continue
            if where > begin:
                shown.append((self.shown(begin), payload[begin - at : where - at]))
            if into:
                shown.append((self.shown(where), into))
            begin = min(where + out, end)
        if begin < end:
            moved = self.shown(begin)
            moved += sum(len(i) for w, o, i in self.edits if o == 0 and w == begin)
            shown.append((moved, payload[begin - at :]))
        return shown


class Meddler:
    """What is to be changed, and how far the connections have come."""

    def __init__(self, words: list[str]) -> None:
        self.pairs: list[tuple[bytes, bytes]] = []
        self.flips: list[tuple[int, int]] = []
        self.edits: list[tuple[str, int, int]] = []
        self.forget_s = 0.0
        self.seen: dict[tuple[bytes, int], int] = {}
        self.streams: dict[tuple[bytes, int, int], Stream] = {}
        self.heard: dict[tuple[bytes, int, int], float] = {}
        self.held: tuple[Stream, int, bytes] | None = None
        for word in words:
            old, new = word.split("=")
            kind, *numbers = old.split(":")
            if kind == "forget":
                self.forget_s = float(numbers[0])
            elif kind == "flip":
                self.flips.append((int(numbers[0]), int(numbers[1])))
            elif kind in EDITS:
                self.edits.append((kind, int(numbers[0]), int(numbers[1])))
            else:
                self.pairs.append((bytes.fromhex(old), bytes.fromhex(new)))
        self.has_edits = bool(self.edits)

    def change(self, segment: Segment) -> None:
        payload = segment.payload
        for old, new in self.pairs:
            payload = payload.replace(old, new)
        way = (segment.addresses, segment.source)
        before = self.seen.get(way, 0)
        self.seen[way] = before + len(payload)
        for flip in list(self.flips):
            if flip[0] == segment.target and before >= flip[1]:
                self.flips.remove(flip)
                payload = payload[:-1] + bytes([payload[-1] ^ 1])
        if payload != segment.payload:
            say("changed")
        segment.payload = payload

    def is_forgotten(self, segment: Segment) -> bool:
        """A new connection is let through, and what it carries from then on."""
        if self.forget_s == 0:
            return False
        now = time.monotonic()
        way = min(segment.way, segment.way_back)
        last = self.heard.get(way, now)
        if segment.flags & SYN:
            last = now
        elif last >= 0 and now - last >= self.forget_s:
            say("forgot")
            last = -1.0
        self.heard[way] = now if last >= 0 else -1.0
        return last < 0

    def begin_edit(self, stream: Stream, to_port: int, payload: bytes, at: int) -> None:
        """These bytes come for the first time, perhaps. Are they to be changed?"""
        is_next = at == stream.count
        if self.held is not None and self.held[0] is stream and is_next:
            _, where, first = self.held
            self.held = None
            stream.edits.append((where, len(first) + len(payload), payload + first))
            say(DONE["swap"])
            return
        for edit in self.edits:
            kind, port, count = edit
            if not is_next or at < count or port not in (0, to_port):
                continue
            if kind == "replay" and not stream.last:
                continue
            self.edits.remove(edit)
            if kind == "swap":
                self.held = (stream, at, payload)
                return
            half = len(payload) // 2
            stream.edits.append(
                {
                    "drop": (at, len(payload), b""),
                    "cut": (at + half, len(payload) - half, b""),
                    "replay": (at, 0, stream.last),
                }[kind]
            )
            say(DONE[kind])
            return

    def edit(self, segment: Segment) -> list[bytes]:
        """The frames that stand for this one."""
        if segment.flags & SYN:
            segment.refuse_sack()
            self.streams[segment.way] = Stream(segment.number + 1)
            return [segment.frame(segment.number, segment.payload)]
        stream = self.streams.get(segment.way)
        back = self.streams.get(segment.way_back)
        if stream is None or back is None:
            return [segment.frame(segment.number, segment.payload)]
        if segment.flags & ACK:
            confirmed = back.confirmed(back.offset(segment.confirmed))
            segment.confirmed = back.first + confirmed
        at, payload = stream.offset(segment.number), segment.payload
        if payload:
            held = self.held
            self.begin_edit(stream, segment.target, payload, at)
            stream.last = payload
            stream.count = max(stream.count, at + len(payload))
            if self.held is not None and self.held[0] is stream:
                return []  # until the next one comes
            if held is not None and held[0] is stream:
                at, payload = held[1], held[2] + payload
        parts = stream.parts(at, payload)
        if not parts:
            # An old number has the receiver confirm what it has.
            parts = [(stream.shown(at) - (1 if payload else 0), b"")]
        return [
            segment.frame(stream.first + where + begin, part[begin : begin + MOST_BYTES])
            for where, part in parts
            for begin in range(0, max(len(part), 1), MOST_BYTES)
        ]

    def pass_on(self, frame: bytes) -> list[bytes]:
        """The frames that go on in place of this one."""
        segment = take_apart(frame)
        if segment is None:
            return [frame]
        if self.is_forgotten(segment):
            return []
        if segment.payload:
            self.change(segment)
        if self.has_edits:
            return self.edit(segment)
        return [segment.frame(segment.number, segment.payload)]


def main(words: list[str]) -> None:
    sides = []
    for name in words[:2]:
        side = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(ALL))
        side.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        side.bind((name, 0))
        sides.append(side)
    other = {sides[0]: sides[1], sides[1]: sides[0]}
    meddler = Meddler(words[2:])
    say("ready")
    while True:
        for side in select.select(sides, [], [])[0]:
            frame, where = side.recvfrom(1 << 17)
            if where[2] == OUTGOING:
                continue
            try:
                for one in meddler.pass_on(frame):
                    other[side].send(one)
            except OSError:
                pass  # a link that is down, or a frame that is too long: lost


if __name__ == "__main__":
    main(sys.argv[1:])
