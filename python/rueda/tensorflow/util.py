# SPDX-License-Identifier: Apache-2.0
"""Small helpers that scripts of Horovod's import."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from .library import is_eager as _executing_eagerly

__all__ = ["refs_to_vars", "vars_to_refs"]


def _cache(function: Any) -> Any:
    """Call it once for each list of arguments, in a graph and outside."""
    cached = functools.lru_cache(maxsize=None)(lambda _is_eager, *args: function(*args))
    return lambda *args: cached(_executing_eagerly(), *args)


def _make_subgraph(function: Any) -> Any:
    return tf.function(function)


def vars_to_refs(vars: Any) -> Any:
    """Variables, also in nested lists, as what can be a key of a dict."""
    if isinstance(vars, list):
        return tuple(vars_to_refs(one) for one in vars)
    return vars.ref()


def refs_to_vars(refs: Any) -> Any:
    """And back."""
    if isinstance(refs, tuple):
        return [refs_to_vars(one) for one in refs]
    return refs.deref()
