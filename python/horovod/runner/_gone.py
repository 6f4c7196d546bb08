# SPDX-License-Identifier: Apache-2.0
"""Parts of Horovod's launcher that have no counterpart: importing them works, using them does not.

Scripts import more than they use, often for a type only. What they really use
fails with words that name the way to the same end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable


class Gone(type):
    """The type of these classes, so that the list of names can tell them."""


def _make(module: str, name: str, instead: str) -> Gone:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{module}.{name} is a part of Horovod's launcher: {instead}")

    return Gone(name, (), {"__module__": module, "__doc__": instead, "__new__": refuse})


def names(module: str, instead: str, wanted: Iterable[str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that has these names."""
    made = {name: _make(module, name, instead) for name in wanted}

    def get(name: str) -> Any:
        if name in made:
            return made[name]
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return get
