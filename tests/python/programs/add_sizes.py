# SPDX-License-Identifier: Apache-2.0
"""Runs allreduces of the sizes in SIZES, in the ways in WAYS, and says how they ended.

The numbers are whole and small, so that sums are exact, also in 16 bits.
"""

import array
import ctypes
import json
import os
import sys

import rueda


class Args(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("dtype", ctypes.c_int),
        ("reduction", ctypes.c_int),
        ("root", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("send", ctypes.c_void_p),
        ("recv", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("send_counts", ctypes.c_void_p),
        ("recv_counts", ctypes.c_void_p),
        ("prescale", ctypes.c_double),
        ("postscale", ctypes.c_double),
        ("compression", ctypes.c_int),
    ]


library, ctx = ctypes.CDLL(rueda.get_library()), ctypes.c_void_p()
library.rueda_alloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
if library.rueda_init(None, ctypes.byref(ctx)) != 0:
    sys.exit(1)
rank, size = library.rueda_rank(ctx), library.rueda_size(ctx)
total = size * (size - 1) // 2


def inputs(count):
    return array.array("f", [(i % 7) + rank for i in range(count)])


def answer(count, by):
    return array.array("f", [((i % 7) * size + total) * by for i in range(count)])


def add(send, recv, count, way):
    args = Args(
        ctypes.sizeof(Args),
        0,
        7,
        0,
        0,
        0,
        send,
        recv,
        count,
        None,
        None,
        1.0,
        0.5 if way == "scaled" else 1.0,
        {"fp16": 1, "bf16": 2}.get(way, 0),
    )
    return library.rueda_run(ctx, ctypes.byref(args))


def check(count, way):
    given = inputs(count)
    out = given if way == "in place" else array.array("f", bytes(4 * count))
    send, recv = given.buffer_info()[0], out.buffer_info()[0]
    if way == "shared":
        send, recv = ctypes.c_void_p(), ctypes.c_void_p()
        assert library.rueda_alloc(ctx, 4 * count, ctypes.byref(send)) == 0
        assert library.rueda_alloc(ctx, 4 * count, ctypes.byref(recv)) == 0
        ctypes.memmove(send, given.buffer_info()[0], 4 * count)
        status = add(send, recv, count, way)
        ctypes.memmove(out.buffer_info()[0], recv, 4 * count)
        library.rueda_free(ctx, send)
        library.rueda_free(ctx, recv)
    else:
        status = add(send, recv, count, way)
    return status == 0 and out == answer(count, 0.5 if way == "scaled" else 1)


report = [
    [size, way, check(size, way)]
    for size in map(int, os.environ["SIZES"].split())
    for way in os.environ["WAYS"].split(",")
]
sys.stdout.write(json.dumps(report) + "\n")
library.rueda_barrier(ctx)
library.rueda_shutdown(ctx)
