# SPDX-License-Identifier: Apache-2.0
"""The channel between rueda.run() and its ranks, and who is kept out of it."""

from __future__ import annotations

import os
import pickle
import resource
import secrets
import socket
import struct
import threading
import time
from typing import Any, Callable

import pytest
from rueda.runner import carry
from rueda.runner.channel import HELLO, Channel, Stranger, greet, welcome
from rueda.runner.job import Counter, is_local

KEY = bytes(range(32))
LIMIT_S = 20


def both(one: Callable[[], Any], other: Callable[[], Any]) -> list[Any]:
    """What two functions that wait for each other return or raise."""
    answers: list[Any] = [None, None]

    def call(place: int, func: Callable[[], Any]) -> None:
        try:
            answers[place] = func()
        except (EOFError, OSError) as error:
            answers[place] = error

    threads = [
        threading.Thread(target=call, args=pair, daemon=True) for pair in enumerate([one, other])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()
    return answers


def make_pair() -> tuple[socket.socket, socket.socket]:
    pair = socket.socketpair()
    for one in pair:
        one.settimeout(LIMIT_S / 2)
    return pair


def meet(rank: int = 1, size: int = 2) -> tuple[Channel, Channel]:
    a, b = make_pair()
    driver, worker = both(lambda: welcome(a, KEY, size), lambda: greet(b, KEY, rank))
    return driver, worker


def test_messages_arrive_in_both_directions() -> None:
    driver, worker = meet()
    assert driver.rank == 1
    for body in (b"", b"x", bytes(3_000_000)):
        _, got = both(lambda body=body: driver.send(body), worker.receive)
        assert got == body
        _, got = both(lambda body=body: worker.send(body), driver.receive)
        assert got == body


def test_ends_with_different_keys_do_not_meet() -> None:
    a, b = make_pair()

    def decline() -> None:
        try:
            welcome(a, KEY, 2)
        finally:
            a.close()

    driver, worker = both(decline, lambda: greet(b, bytes(32), 1))
    assert isinstance(driver, Stranger)
    assert isinstance(worker, (EOFError, OSError))


def test_a_driver_without_the_key_is_not_believed() -> None:
    a, b = make_pair()

    def pretend() -> None:
        a.sendall(HELLO + bytes(32))
        a.recv(1000)
        a.sendall(bytes(32))

    _, worker = both(pretend, lambda: greet(b, KEY, 0))
    assert isinstance(worker, Stranger)


def test_a_rank_that_there_is_not_is_refused() -> None:
    a, b = make_pair()

    def decline() -> None:
        try:
            welcome(a, KEY, 2)
        finally:
            a.close()

    driver, _ = both(decline, lambda: greet(b, KEY, 2))
    assert isinstance(driver, Stranger)


def overhear(body: bytes) -> tuple[Channel, bytes, socket.socket]:
    """A rank that waits, a message to it as it is on the way, and where to put it."""
    a, b = make_pair()
    driver, worker = both(lambda: welcome(a, KEY, 2), lambda: greet(b, KEY, 1))
    c, d = make_pair()
    driver._sock = c
    driver.send(body)
    return worker, d.recv(1 << 16), a


@pytest.mark.parametrize("place", [0, 7, 8, 39, 40, 44, 45, 76])
def test_a_changed_message_is_refused(place: int) -> None:
    worker, message, wire = overhear(b"hello")
    assert len(message) == 8 + 32 + 5 + 32
    changed = bytearray(message)
    changed[place] ^= 1
    wire.sendall(changed)
    with pytest.raises(Stranger):
        worker.receive()


def test_a_message_is_taken_once() -> None:
    worker, message, wire = overhear(b"hello")
    wire.sendall(message * 2)
    assert worker.receive() == b"hello"
    with pytest.raises(Stranger):
        worker.receive()


def test_a_length_alone_takes_no_memory() -> None:
    worker, _, wire = overhear(b"")
    wire.sendall(struct.pack("!Q", 1 << 60) + secrets.token_bytes(32))
    with pytest.raises(Stranger):
        worker.receive()


def is_hung_up(sock: socket.socket) -> bool:
    sock.settimeout(LIMIT_S)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


# ---- The port ------------------------------------------------------------------


def test_a_stranger_is_told_nothing_and_not_heard() -> None:
    counter = Counter(b"task", 1, is_one_host=True)
    offer = carry.Offer.parse(counter.offer())
    try:
        with socket.create_connection((offer.addresses[0], offer.port), LIMIT_S) as sock:
            with pytest.raises((EOFError, OSError)):
                greet(sock, bytes(32), 0)
        with socket.create_connection((offer.addresses[0], offer.port), LIMIT_S) as sock:
            got = sock.recv(1 << 16)
            assert got.startswith(HELLO)
            assert len(got) == len(HELLO) + 32
            sock.sendall(carry.outcome_of_value(0, "mine").pack() + bytes(1000))
            assert is_hung_up(sock)
        assert counter.outcomes == {}
        assert not counter.has_served()
    finally:
        counter.close()


@pytest.mark.parametrize(
    "outcome",
    [carry.Outcome(b"x"), carry.Outcome(b""), carry.Outcome(None, "KeyError", "words", b"e"),
     carry.Outcome(None, "KeyError", "", None)],
)  # fmt: skip
def test_outcomes_come_back_as_they_were(outcome: carry.Outcome) -> None:
    assert carry.Outcome.unpack(outcome.pack()) == outcome


@pytest.mark.parametrize("cut", range(45))
def test_broken_outcomes_are_refused(cut: int) -> None:
    data = carry.Outcome(None, "KeyError", "words", b"e").pack()
    with pytest.raises(ValueError):
        carry.Outcome.unpack(data[:cut])


def test_the_port_outlives_a_lack_of_descriptors(capfd: pytest.CaptureFixture[str]) -> None:
    counter = Counter(b"task", 1, is_one_host=True)
    offer = carry.Offer.parse(counter.offer())
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    first = socket.socket()
    sock = socket.socket()
    lowest = os.dup(0)
    os.close(lowest)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
        first.connect((offer.addresses[0], offer.port))  # the port cannot accept it
        time.sleep(0.5)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        sock.settimeout(LIMIT_S)
        sock.connect((offer.addresses[0], offer.port))
        assert greet(sock, offer.key, 0).receive() == b"task"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        counter.close()
        first.close()
        sock.close()
    assert capfd.readouterr().err.count("ulimit -n") == 1


def test_a_crowd_of_strangers_keeps_no_rank_out() -> None:
    counter = Counter(b"task", 1, is_one_host=True)
    offer = carry.Offer.parse(counter.offer())
    strangers = []
    try:
        for _ in range(100):
            strangers.append(socket.create_connection((offer.addresses[0], offer.port), LIMIT_S))
        sock = socket.create_connection((offer.addresses[0], offer.port), LIMIT_S)
        sock.settimeout(LIMIT_S)
        channel = greet(sock, offer.key, 0)
        assert channel.receive() == b"task"
        channel.send(carry.outcome_of_value(0, 5).pack())
        assert channel.receive() == b""
        assert pickle.loads(counter.outcomes[0].value) == (0, 5)
        sock.close()
    finally:
        counter.close()
        for one in strangers:
            one.close()


@pytest.mark.parametrize(
    ("words", "is_so"),
    [
        ([], True),
        (["--num-proc", "2"], True),
        (["--hosts", "localhost:2,127.0.0.1:1"], True),
        (["--hosts", f"{socket.gethostname()}:2"], True),
        (["--hosts", "localhost:2,elsewhere:1"], False),
        (["--hostfile", "hosts"], False),
    ],
)
def test_only_jobs_of_other_hosts_open_a_port_to_them(words: list[str], is_so: bool) -> None:
    assert is_local(words) == is_so
