# SPDX-License-Identifier: Apache-2.0
"""Rueda: collectives and a run time for distributed training.

The C library is part of this package. CMake and pkg-config find it below
:func:`get_prefix`::

    cmake -DCMAKE_PREFIX_PATH=$(python -c 'import rueda; print(rueda.get_prefix())') ...

Others find the header in :func:`get_include` and the library at :func:`get_library`.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from ._core import version as __version__

__all__ = [
    "__version__", "elastic", "get_include", "get_library", "get_prefix", "metrics", "run",
]  # fmt: skip

_HERE = os.path.dirname(os.path.abspath(__file__))


def __getattr__(name: str) -> Any:
    """``rueda.elastic``, ``rueda.run`` and ``rueda.metrics`` are loaded on first use."""
    if name == "elastic":
        return importlib.import_module(".elastic", __name__)
    if name == "metrics":
        from .common.gpus import metrics

        return metrics
    if name != "run":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .runner import run

    return run


def __dir__() -> list[str]:
    """With what is loaded on first use, for completion."""
    return sorted({*globals(), *__all__})


def get_include() -> str:
    """Return the folder to give to a C compiler, as in ``-I``.

    The header in it is included as ``<rueda/rueda.h>``.
    """
    return _inside("include", "rueda", "rueda.h", keep=1)


def get_library() -> str:
    """Return the path of ``librueda.so``, to link with or to load."""
    return _inside("lib", "librueda.so", keep=2)


def get_prefix() -> str:
    """Return the folder that has ``lib/cmake/rueda`` and ``lib/pkgconfig``.

    ``CMAKE_PREFIX_PATH`` takes it as it is, and ``PKG_CONFIG_PATH`` with
    ``/lib/pkgconfig`` behind it.
    """
    return _inside("lib", "pkgconfig", "rueda.pc", keep=0)


def _inside(*parts: str, keep: int) -> str:
    """Path made of the first ``keep`` parts, once all of them are seen to be there."""
    whole = os.path.join(_HERE, *parts)
    if not os.path.exists(whole):
        raise FileNotFoundError(
            f"{whole} is missing: this is a source tree or a damaged installation; "
            "install the wheel, which carries the compiled library"
        )
    return os.path.join(_HERE, *parts[:keep]) if keep else _HERE
