# SPDX-License-Identifier: Apache-2.0
"""Every rank contributes its number; every rank gets the sum.

Any launcher will do, or none:

    ruedarun -np 4 python hello.py
    mpirun -np 4 python hello.py
    torchrun --nproc-per-node 4 hello.py
    RUEDA_RANK=0 RUEDA_SIZE=2 python hello.py & RUEDA_RANK=1 RUEDA_SIZE=2 python hello.py

The library is driven by ctypes: this needs the package rueda and nothing else.
"""

from __future__ import annotations

import ctypes as c
import os
import sys
from typing import Any

import rueda
from rueda import places

FLOAT32, SUM = 7, 0
EXCHANGE = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_size_t)


class InitArgs(c.Structure):
    """struct rueda_init_args of rueda.h, field by field."""

    _fields_ = [
        ("struct_size", c.c_size_t), ("rank", c.c_int), ("size", c.c_int),
        ("job", c.c_char_p), ("key_file", c.c_char_p), ("timeout_ms", c.c_int),
        ("error", c.c_char_p), ("error_bytes", c.c_size_t),
        ("local_rank", c.c_int), ("local_size", c.c_int),
        ("cross_rank", c.c_int), ("cross_size", c.c_int),
        ("store", c.c_char_p), ("exchange", EXCHANGE), ("exchange_arg", c.c_void_p),
    ]  # fmt: skip


def callback(exchange: places.Exchange, rank: int) -> Any:
    """The exchange as C calls it: it fills in rank 0's bytes, and says 0 for yes."""

    def call(_arg: int | None, data: int, length: int) -> int:
        try:
            c.memmove(data, exchange(rank, c.string_at(data, length)), length)
        except Exception as error:
            print(f"rank {rank}: {error}", file=sys.stderr)
            return -1
        return 0

    return EXCHANGE(call)


def main() -> int:
    library = c.CDLL(os.environ.get("RUEDA_LIBRARY") or rueda.get_library())
    library.rueda_status_str.restype = library.rueda_error.restype = c.c_char_p
    words = c.create_string_buffer(1024)
    args = InitArgs(c.sizeof(InitArgs), -1, -1, error=c.addressof(words), error_bytes=1024,
                    local_rank=-1, local_size=-1, cross_rank=-1, cross_size=-1)  # fmt: skip
    place = places.find_tf_config()
    torch_rank = places.find_torchrun()
    if place is not None:
        args.rank, args.size, args.store = place.rank, place.size, place.store.encode()
    elif torch_rank is not None and "RUEDA_STORE" not in os.environ:
        args.exchange = callback(places.torch_exchange(), torch_rank)

    ctx, x = c.c_void_p(), c.c_float()
    if library.rueda_init(c.byref(args), c.byref(ctx)) != 0:
        print(f"rueda_init: {words.value.decode()}", file=sys.stderr)
        return 1
    rank, size = library.rueda_rank(ctx), library.rueda_size(ctx)
    x.value = rank + 1
    status = library.rueda_allreduce(ctx, c.byref(x), c.byref(x), c.c_size_t(1), FLOAT32, SUM)
    if status == 0:
        # In one piece, since the ranks share a terminal.
        sys.stdout.write(f"rank {rank} of {size}: the sum is {x.value:g}\n")
    else:
        what = library.rueda_status_str(status) + b": " + library.rueda_error(ctx)
        print(what.decode(), file=sys.stderr)
    library.rueda_shutdown(ctx)
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
