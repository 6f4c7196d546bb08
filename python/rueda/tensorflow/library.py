# SPDX-License-Identifier: Apache-2.0
"""The ops in C (``src/bind/tensorflow``), as functions; loaded when this is imported."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops as tf_ops

import rueda
from rueda.common.basics import basics

__all__ = ["blocks", "call", "is_eager", "token"]

_PATH = os.path.join(os.path.dirname(rueda.get_library()), "librueda_tensorflow.so")

#: How many ops may wait at once where each occupies a thread.
_THREADS = "256"

_functions = tf.load_op_library(_PATH)
_library = ctypes.CDLL(_PATH)
_library.rueda_tensorflow_failure.restype = ctypes.c_char_p
_library.rueda_tensorflow_blocks.restype = ctypes.c_bool

_failure = _library.rueda_tensorflow_failure().decode(errors="replace")
if _failure:
    raise ImportError(
        f"rueda.tensorflow cannot add its ops to TensorFlow {tf.__version__}: {_failure} is "
        "missing or failed; versions from 2.12 to 2.21 are known to work"
    )

#: Do ops wait for the other ranks in TensorFlow's threads, one at a time?
blocks: bool = _library.rueda_tensorflow_blocks()
if blocks:
    # TensorFlow reads it when it begins to run ops. Ranks whose threads all wait, each
    # rank's for other ops, would wait for ever.
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", _THREADS)
_is_told = not blocks


def _tell() -> None:
    """Say once in a job that ops wait; by rank 0, which is known after init()."""
    global _is_told
    if not basics.is_initialized():
        return
    _is_told = True
    if not basics.is_master():
        return
    why = (
        "RUEDA_TENSORFLOW_WAITS=1"
        if os.environ.get("RUEDA_TENSORFLOW_WAITS") == "1"
        else f"TensorFlow {tf.__version__} does not let ops of a library be asynchronous"
    )
    print(
        f"rueda.tensorflow: {why}, so each op occupies a thread of TensorFlow while it waits, "
        "and gradients are reduced as one group",
        file=sys.stderr,
    )


def _leave_source_alone() -> None:
    """Have TensorFlow call our functions as they are when it traces, and not translate them.

    It translates what it finds no rule for: that takes time in each trace. Where the rules
    are no longer where they were, it goes on to do so.
    """
    try:
        from tensorflow.python.autograph.core import config

        config.CONVERSION_RULES = (config.DoNotConvert("rueda"), *config.CONVERSION_RULES)
    except (ImportError, AttributeError):
        return


_leave_source_alone()
_eager_token: Any = None


def is_eager() -> bool:
    """Are ops run at once, and not put into a graph?"""
    return bool(tf.executing_eagerly())


def token() -> Any:
    """Return the last input of our ops, one for each graph; see src/bind/tensorflow/op.h."""
    global _eager_token
    if is_eager():
        if _eager_token is None:
            with tf.device("CPU"):
                _eager_token = tf.constant(0)
        return _eager_token
    graph = tf_ops.get_default_graph()
    known = getattr(graph, "_rueda_token", None)
    if known is None:
        # Not inside a branch or loop in which it is asked for first.
        with tf_ops.control_dependencies(None):
            known = _functions.horovod_token()
        graph._rueda_token = known
    return known


#: What each replica may ask.
_NUMBERS = {
    "horovod_local_rank", "horovod_local_size", "horovod_process_set_included", "horovod_rank",
    "horovod_size",
}  # fmt: skip


def call(function: str, *inputs: Any, name: str | None = None, **attributes: Any) -> Any:
    """Run an op by its name in Python, or put it into the graph."""
    if not _is_told:
        _tell()
    if function not in _NUMBERS and tf.distribute.has_strategy():
        _check_replica()
    return getattr(_functions, function)(*inputs, name=name, **attributes)


def _check_replica() -> None:
    """Each local replica would take part by itself, under the names of the others."""
    context = tf.distribute.get_replica_context()
    if context is None:
        return  # in the scope of a strategy or in merge_call(): once in this process
    count = len(context.strategy.extended.worker_devices)
    if count > 1:
        raise RuntimeError(
            f"a collective of rueda.tensorflow was called in one of {count} replicas of this "
            f"process ({type(context.strategy).__name__}). A rank takes part once: call it in "
            "tf.distribute.get_replica_context().merge_call(), or give each process one device"
        )
