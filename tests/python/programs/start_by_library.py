# SPDX-License-Identifier: Apache-2.0
"""Calls rueda_init() of the library, without Python's part; its message is in the log."""

import ctypes

import rueda

ctx = ctypes.c_void_p()
ctypes.CDLL(rueda.get_library()).rueda_init(None, ctypes.byref(ctx))
