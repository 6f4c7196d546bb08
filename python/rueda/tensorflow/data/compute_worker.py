# SPDX-License-Identifier: Apache-2.0
"""The job that prepares data: every rank is a worker of ``tf.data``'s service.

    ruedarun -np 4 python -m rueda.tensorflow.data.compute_worker service.json

It ends when the job that trains calls ``config.compute_client().shutdown()``.
"""

from __future__ import annotations

import argparse
import secrets

from .. import mpi_ops
from ..functions import broadcast_object
from .board import Board
from .compute_service import TfDataServiceConfig, compute_worker_fn

__all__ = ["main"]


def main(dispatchers: int, dispatcher_side: str, configfile: str, timeout: int) -> None:
    """Write the file, and prepare data on this rank."""
    mpi_ops.init()
    size = mpi_ops.size()
    if dispatchers < 1 or size % dispatchers:
        raise ValueError(f"{size} workers cannot be divided among {dispatchers} dispatchers")
    board = config = None
    try:
        if mpi_ops.rank() == 0:
            key = secrets.token_bytes(32)
            board = Board(key)
            config = TfDataServiceConfig(
                dispatchers, size // dispatchers, dispatcher_side, board.addresses(), key, timeout
            )
            config.write(configfile)
        compute_worker_fn(broadcast_object(config, name="TfDataServiceConfig"))
    finally:
        if board is not None:
            board.close()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("configfile", help="the file to write, for the job that trains")
    parser.add_argument("--dispatchers", type=int, default=1, help="how many (%(default)s)")
    parser.add_argument(
        "--dispatcher-side", choices=("compute", "training"), default="compute",
        help="which job runs them (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=int, default=60, help="seconds to wait for each other (%(default)s)"
    )
    options = parser.parse_args()
    main(options.dispatchers, options.dispatcher_side, options.configfile, options.timeout)


if __name__ == "__main__":
    _main()
