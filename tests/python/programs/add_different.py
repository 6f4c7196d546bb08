# SPDX-License-Identifier: Apache-2.0
"""Adds up numbers of which no two packets have the same, and looks at each sum."""

import array
import ctypes
import sys

import rueda

library, ctx = ctypes.CDLL(rueda.get_library()), ctypes.c_void_p()
library.rueda_error.restype = ctypes.c_char_p
if library.rueda_init(None, ctypes.byref(ctx)) != 0:
    sys.exit(1)
count, size = 200_000, library.rueda_size(ctx)
numbers = array.array("f", range(count))
place = ctypes.c_void_p(numbers.buffer_info()[0])
status = library.rueda_allreduce(ctx, place, place, ctypes.c_size_t(count), 7, 0)
if status != 0:
    sys.exit(library.rueda_error(ctx).decode())
assert numbers == array.array("f", range(0, size * count, size))
library.rueda_shutdown(ctx)
