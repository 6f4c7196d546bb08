# SPDX-License-Identifier: Apache-2.0
"""Bytes between :func:`rueda.run` and its ranks, which have proven the key.

Both ends prove that they know the key of the run before either reads anything
of variable length. Every message is signed, with its number and its length, so
that no attacker in between can add, change, repeat or drop one. They are signed and
not encrypted: an attacker who listens on the network can read them.

    driver                              rank
    HELLO, 32 random bytes       -->
                                 <--    32 random bytes, rank, proof
    proof                        -->

    length, signature, body, signature          either way, from then on
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import struct

HELLO = b"rueda run 1\n"
KEY_BYTES = 32
_NONCE_BYTES = 32
_PROOF_BYTES = 32

# Memory is taken as bytes arrive, so that a length alone costs nothing.
_PIECE_BYTES = 1 << 22


class Stranger(ConnectionError):
    """The other end does not know the key, or its message was changed on the way."""


def _proof(key: bytes, *parts: bytes) -> bytes:
    # Parts are of fixed length but for the last, so that no two lists of them
    # are the same bytes.
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def _check(proof: bytes, want: bytes) -> None:
    if not hmac.compare_digest(proof, want):
        raise Stranger("a peer does not know the key of this run")


def _read(sock: socket.socket, length: int) -> bytes | bytearray:
    """Read this many bytes; EOFError when the other end is gone."""
    data = bytearray()
    while len(data) < length:
        piece = sock.recv(min(length - len(data), _PIECE_BYTES))
        if not piece:
            raise EOFError("the other end is gone")
        data += piece
    return data


class Channel:
    """Messages both ways; one thread may send while another receives."""

    def __init__(self, sock: socket.socket, rank: int, out_key: bytes, in_key: bytes) -> None:
        self.rank = rank
        self._sock = sock
        self._out_key, self._in_key = out_key, in_key
        self._sent = self._received = 0

    def send(self, body: bytes) -> None:
        head = struct.pack("!QQ", self._sent, len(body))
        self._sent += 1
        self._sock.sendall(head[8:] + _proof(self._out_key, b"head", head))
        self._sock.sendall(body)
        self._sock.sendall(_proof(self._out_key, b"body", head, body))

    def receive(self) -> bytes | bytearray:
        """The next message; EOFError when the other end is gone."""
        head = struct.pack("!Q", self._received) + _read(self._sock, 8)
        self._received += 1
        _check(_read(self._sock, _PROOF_BYTES), _proof(self._in_key, b"head", head))
        body = _read(self._sock, struct.unpack("!QQ", head)[1])
        _check(_read(self._sock, _PROOF_BYTES), _proof(self._in_key, b"body", head, body))
        return body

    def close(self) -> None:
        self._sock.close()


def _keys(key: bytes, driver: bytes, rank: bytes) -> tuple[bytes, bytes]:
    """One for what the driver says, one for what the rank says."""
    return _proof(key, b"to rank", driver, rank), _proof(key, b"to driver", driver, rank)


def welcome(sock: socket.socket, key: bytes, size: int) -> Channel:
    """The driver's side; Stranger, EOFError or OSError where it does not come about.

    How long it may take is up to the caller, which can shut the socket down.
    """
    mine = secrets.token_bytes(_NONCE_BYTES)
    sock.sendall(HELLO + mine)
    theirs = bytes(_read(sock, _NONCE_BYTES + 4))
    _check(_read(sock, _PROOF_BYTES), _proof(key, b"rank", mine, theirs))
    rank = struct.unpack("!I", theirs[_NONCE_BYTES:])[0]
    if rank >= size:
        raise Stranger(f"there is no rank {rank} in a job of {size}")
    sock.sendall(_proof(key, b"driver", mine, theirs))
    out_key, in_key = _keys(key, mine, theirs)
    return Channel(sock, rank, out_key, in_key)


def greet(sock: socket.socket, key: bytes, rank: int) -> Channel:
    """The rank's side of :func:`welcome`."""
    hello = bytes(_read(sock, len(HELLO)))
    if hello != HELLO:
        raise Stranger("whoever answers there is not rueda.run() of this version")
    theirs = bytes(_read(sock, _NONCE_BYTES))
    mine = secrets.token_bytes(_NONCE_BYTES) + struct.pack("!I", rank)
    sock.sendall(mine + _proof(key, b"rank", theirs, mine))
    _check(_read(sock, _PROOF_BYTES), _proof(key, b"driver", theirs, mine))
    in_key, out_key = _keys(key, theirs, mine)
    return Channel(sock, rank, out_key, in_key)
