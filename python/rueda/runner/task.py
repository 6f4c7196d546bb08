# SPDX-License-Identifier: Apache-2.0
"""A rank of :func:`rueda.run`: ``python -m rueda.runner.task``.

It asks the driver for a function, calls it, and reports how that ended before
any other process can notice: the first exception to arrive is the first there was.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time

from . import carry
from .channel import Channel, Stranger, greet

_CONNECT_S = 30.0
_TRY_S = 5.0
_PAUSE_S = 0.2
# For the last words of a rank whose driver is gone.
_END_S = 5.0

#: The number of a process of an elastic job, which has a rank only in a term of it.
_WORKER = "RUEDA_ELASTIC_WORKER"
_RANK_VARIABLES = ("RUEDA_RANK", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def rank_of(environment: dict[str, str] | os._Environ[str]) -> int:
    for name in _RANK_VARIABLES:
        if environment.get(name, "").isdecimal():
            return int(environment[name])
    return 0


def number_of(environment: dict[str, str] | os._Environ[str]) -> int:
    """What the driver knows this process by: its rank, unless ranks come and go."""
    worker = environment.get(_WORKER, "")
    return int(worker) if worker.isdecimal() else rank_of(environment)


def _addresses(offer: carry.Offer) -> list[str]:
    """Where the driver may be; the store of its launcher is on the same host."""
    host = os.environ.get("RUEDA_STORE", "").rpartition(":")[0].strip("[]")
    return list(dict.fromkeys(([host] if host else []) + list(offer.addresses)))


def connect(offer: carry.Offer, rank: int) -> Channel:
    """A channel to the driver; ConnectionError that says what was tried."""
    deadline = time.monotonic() + _CONNECT_S
    while True:
        words = []
        for address in _addresses(offer):
            try:
                sock = socket.create_connection((address, offer.port), _TRY_S)
            except OSError as error:
                words.append(f"{address}: {error}")
                continue
            try:
                channel = greet(sock, offer.key, rank)
                sock.settimeout(None)
                return channel
            except (EOFError, OSError) as error:
                sock.close()
                words.append(f"{address}: {error}")
                if isinstance(error, Stranger):
                    continue
        if time.monotonic() > deadline:
            raise ConnectionError(
                f"rank {rank} does not reach rueda.run() at port {offer.port}: {'; '.join(words)}"
            )
        time.sleep(_PAUSE_S)


class Driver:
    """The process that called :func:`rueda.run`, and wants to know how the call ends.

    Only one thread reads from the channel, so that the end of the driver is
    noticed while the function runs.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._is_told = threading.Event()
        self._is_over = False

    def watch(self) -> None:
        threading.Thread(target=self._wait_for_end, name="rueda-run", daemon=True).start()

    def tell(self, outcome: carry.Outcome) -> None:
        """Returns when the driver has it."""
        self._channel.send(outcome.pack())
        self._is_told.wait()

    def _wait_for_end(self) -> None:
        try:
            self._channel.receive()
            self._is_over = True
        except (EOFError, OSError):
            pass
        if not self._is_over:
            # No process is left to take the result: what is left of the job ends.
            print("rueda: the process that called run() is gone", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(_END_S)
            os._exit(128 + signal.SIGTERM)
        self._is_told.set()


def _has_to_leave() -> bool:
    """Has an elastic job no place for this process any more? Then its end is no failure."""
    if _WORKER not in os.environ:
        return False
    from rueda import _core

    return _core.elastic_is_refused()


def _call(driver: Driver, task: bytes | bytearray) -> None:
    try:
        func, args, kwargs = carry.unpack_task(task)
        value = func(*args, **kwargs)
        # Its last rank, in a job whose ranks change.
        outcome = carry.outcome_of_value(rank_of(os.environ), value)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BaseException as error:
        # Without the frame of this function.
        trace = error.__traceback__
        error.__traceback__ = trace.tb_next or trace if trace is not None else None
        driver.tell(carry.outcome_of_error(error))
        if isinstance(error, SystemExit):
            if _has_to_leave():
                sys.exit(0)
            # The driver has been told that there is no result.
            sys.exit(error.code or 1)
        # As where nothing catches it, but from the first frame of the function on.
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)
    driver.tell(outcome)


def main() -> None:
    # What the function starts has no business with the key.
    text = os.environ.pop(carry.VARIABLE, None)
    if text is None:
        sys.exit("rueda.runner.task: this is started by rueda.run() only")
    try:
        offer = carry.Offer.parse(text)
    except OSError as error:
        sys.exit(
            f"rueda.runner.task: rank {rank_of(os.environ)} cannot read the key of the run, which"
            f" mpirun and jsrun must not carry: {error}; is the home folder the same on all hosts?"
        )
    channel = connect(offer, number_of(os.environ))
    task = channel.receive()
    driver = Driver(channel)
    driver.watch()
    _call(driver, task)


if __name__ == "__main__":
    main()
