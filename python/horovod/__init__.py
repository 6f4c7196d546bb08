# SPDX-License-Identifier: Apache-2.0
"""Rueda under the names that existing scripts import.

``horovod.torch`` and its like are the very modules of ``rueda``, not copies:
what is set in one is seen in the other. Modules that are only here, in this
folder, are found as usual.
"""

from __future__ import annotations

import os
from typing import Any

from . import _alias

__all__ = ["__version__", "run"]

#: The release of Horovod whose interface this is; that of Rueda itself is
#: ``rueda.__version__``.
__version__ = "0.28.1"

# Under this name a job is ended for a stall only where that is asked for.
os.environ.setdefault("RUEDA_STALL_GIVE_UP", "0")

_alias.install(__name__, "rueda", __path__)


def __getattr__(name: str) -> Any:
    """``horovod.run`` is loaded on first use."""
    if name != "run":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .runner import run

    return run


def __dir__() -> list[str]:
    """With what is loaded on first use, for completion."""
    return sorted({*globals(), *__all__})
