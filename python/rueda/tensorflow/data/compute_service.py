# SPDX-License-Identifier: Apache-2.0
"""Data that the ranks of one job prepare for the ranks of another, by ``tf.data``'s service.

The job that prepares runs compute_worker.py, which writes a file; the job that trains
reads it::

    config = TfDataServiceConfig.read("service.json", wait_for_file_creation=True)
    dataset = dataset.send_to_data_service(config, hvd.rank(), hvd.size())

Dispatchers of ``tf.data`` run on the side of the workers or on that of the training; both
sides tell each other their addresses on a board that rank 0 of the workers keeps.
TensorFlow's servers themselves ask for no key, and send data as it is.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from .. import mpi_ops
from .board import BoardClient

__all__ = [
    "ComputeClient",
    "TfDataServiceConfig",
    "compute_worker_fn",
    "send_to_data_service",
    "tf_data_service",
]

_SIDES = ("compute", "training")
_PAUSE_S = 0.2


class ComputeClient:
    """What the processes of both jobs tell each other."""

    def __init__(
        self,
        addresses: Mapping[str, Sequence[tuple[str, int]]],
        key: bytes,
        dispatchers: int,
        workers_per_dispatcher: int,
    ) -> None:
        self._board = BoardClient(addresses, key)
        self._dispatchers = dispatchers
        self._workers = workers_per_dispatcher

    def _check(self, dispatcher_id: int) -> None:
        if not 0 <= dispatcher_id < self._dispatchers:
            raise IndexError(
                f"there is no dispatcher {dispatcher_id}; they are 0 to {self._dispatchers - 1}"
            )

    def register_dispatcher(self, dispatcher_id: int, dispatcher_address: str) -> None:
        self._check(dispatcher_id)
        self._board.put(f"dispatcher/{dispatcher_id}", dispatcher_address)

    def wait_for_dispatcher_registration(self, dispatcher_id: int, timeout: float) -> str:
        """Return the dispatcher's address, or raise :class:`TimeoutError`."""
        self._check(dispatcher_id)
        name = f"dispatcher/{dispatcher_id}"
        # Also the beginning of other names, dispatcher/1 and dispatcher/10.
        count = 1
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            found = self._board.wait(name, count, left, f"dispatcher {dispatcher_id}")
            if name in found:
                return found[name]
            count = len(found) + 1

    def register_worker_for_dispatcher(self, dispatcher_id: int, worker_id: int) -> None:
        self._check(dispatcher_id)
        self._board.put(f"worker/{dispatcher_id}/{worker_id}")

    def wait_for_dispatcher_worker_registration(self, dispatcher_id: int, timeout: float) -> None:
        """Wait for all workers of a dispatcher."""
        self._check(dispatcher_id)
        what = f"the workers of dispatcher {dispatcher_id}"
        self._board.wait(f"worker/{dispatcher_id}/", self._workers, timeout, what)

    def shutdown(self) -> None:
        """End the workers and their job's board."""
        self._board.put("shutdown")

    def wait_for_shutdown(self) -> None:
        with suppress(ConnectionError):  # a board that is gone is the end, too
            self._board.wait("shutdown", 1, None, "the end")


@dataclass(frozen=True)
class TfDataServiceConfig:
    """How the workers are reached; a file has it for the job that trains."""

    dispatchers: int
    workers_per_dispatcher: int
    dispatcher_side: str
    addresses: Mapping[str, Sequence[tuple[str, int]]]
    key: bytes
    timeout: int = 60

    def __post_init__(self) -> None:
        if self.dispatcher_side not in _SIDES:
            raise ValueError(
                f"dispatcher_side is 'compute' or 'training', not {self.dispatcher_side!r}"
            )

    def compute_client(self, verbose: int = 1) -> ComputeClient:
        return ComputeClient(
            self.addresses, self.key, self.dispatchers, self.workers_per_dispatcher
        )

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "key": self.key.hex()}

    @staticmethod
    def from_dict(config: Mapping[str, Any]) -> TfDataServiceConfig:
        addresses = {
            name: [(str(host), int(port)) for host, port in places]
            for name, places in config["addresses"].items()
        }
        known = {**config, "addresses": addresses, "key": bytes.fromhex(config["key"])}
        return TfDataServiceConfig(**known)

    def write(self, filename: str) -> None:
        """Put the file there at once; only its owner can read it, for the key is in it."""
        path = Path(filename)
        handle, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(self.to_dict(), file)
        os.replace(name, path)

    @staticmethod
    def read(filename: str, wait_for_file_creation: bool = False) -> TfDataServiceConfig:
        while wait_for_file_creation and not os.path.exists(filename):
            time.sleep(_PAUSE_S)
        return TfDataServiceConfig.from_dict(json.loads(Path(filename).read_text("utf-8")))


# ---- Servers of TensorFlow's ------------------------------------------------


def _host() -> str:
    """This host's name, where others can use it; TensorFlow says localhost of its servers."""
    name = os.environ.get("HOROVOD_HOSTNAME") or "localhost"
    if name == "localhost" or name.startswith("127."):
        name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name


class _Dispatcher:
    """A dispatcher of ``tf.data`` that the other processes are told of."""

    def __init__(self, compute: ComputeClient, dispatcher_id: int) -> None:
        self._server = tf.data.experimental.service.DispatchServer()
        address = self._server.target.replace("localhost", _host(), 1)
        compute.register_dispatcher(dispatcher_id, address)

    def stop(self) -> None:
        _stop(self._server)


def _stop(server: Any) -> None:
    server._stop()  # it has no other way
    server.join()


@contextmanager
def tf_data_service(compute_config: TfDataServiceConfig, rank: int) -> Iterator[str]:
    """Give the address of the dispatcher that serves this rank, with all its workers there."""
    compute = compute_config.compute_client()
    is_one = compute_config.dispatchers == 1
    dispatcher = None
    if compute_config.dispatcher_side == "training" and (not is_one or rank == 0):
        dispatcher = _Dispatcher(compute, rank)
    try:
        mine = 0 if is_one else rank
        address = compute.wait_for_dispatcher_registration(mine, compute_config.timeout)
        compute.wait_for_dispatcher_worker_registration(mine, compute_config.timeout)
        yield address
    finally:
        if dispatcher is not None:
            dispatcher.stop()


def send_to_data_service(
    dataset: tf.data.Dataset,
    compute_config: TfDataServiceConfig,
    rank: int,
    size: int | None = None,
    processing_mode: str = "distributed_epoch",
    reuse_dataset: bool = False,
    round_robin: bool = False,
) -> tf.data.Dataset:
    """Return a dataset whose elements the workers make; also a method of datasets.

    With ``reuse_dataset`` all ranks share one job of the service, and with
    ``round_robin`` take turns.
    """
    if compute_config.dispatcher_side == "training":
        raise RuntimeError(
            "the dispatchers are on the side of the training; use them within "
            "tf_data_service(), which stops them in the end"
        )
    takes_turns = reuse_dataset and round_robin
    with tf_data_service(compute_config, rank) as address:
        return dataset.apply(
            tf.data.experimental.service.distribute(
                processing_mode=processing_mode,
                service=address,
                job_name="job" if reuse_dataset else None,
                consumer_index=rank if takes_turns else None,
                num_consumers=size if takes_turns else None,
            )
        )


tf.data.Dataset.send_to_data_service = send_to_data_service


def compute_worker_fn(compute_config: TfDataServiceConfig) -> None:
    """Prepare data on this rank until the other job says that it is enough."""
    mpi_ops.init()
    rank = mpi_ops.rank()
    number, place = divmod(rank, compute_config.workers_per_dispatcher)
    compute = compute_config.compute_client()
    dispatcher = None
    if compute_config.dispatcher_side == "compute" and place == 0:
        dispatcher = _Dispatcher(compute, number)
    address = compute.wait_for_dispatcher_registration(number, compute_config.timeout)
    worker = tf.data.experimental.service.WorkerServer(
        tf.data.experimental.service.WorkerConfig(
            dispatcher_address=address.partition("://")[2],
            worker_address=f"{_host()}:%port%",
            heartbeat_interval_ms=1000,
            dispatcher_timeout_ms=compute_config.timeout * 1000,
        )
    )
    worker.start()
    compute.register_worker_for_dispatcher(number, rank)
    compute.wait_for_shutdown()
    _stop(worker)
    if dispatcher is not None:
        dispatcher.stop()
