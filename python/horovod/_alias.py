# SPDX-License-Identifier: Apache-2.0
"""Modules that have a second name."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Same(Loader):
    """Hands out a module that is there under its first name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._own: tuple[Any, Any] = (None, None)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._name)
        self._own = (module.__spec__, module.__loader__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed, and stays what it was."""
        module.__spec__, module.__loader__ = self._own

    def get_code(self, name: str) -> Any:
        """For ``python -m``."""
        spec = importlib.util.find_spec(self._name)
        return None if spec is None else spec.loader.get_code(spec.name)  # type: ignore[union-attr]


class _Finder(MetaPathFinder):
    def __init__(self, second: str, first: str, folders: Iterable[str]) -> None:
        self._second = second
        self._first = first
        self._folders = list(folders)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package != self._second or self._is_here(rest.partition(".")[0]):
            return None
        first = f"{self._first}.{rest}"
        if importlib.util.find_spec(first) is None:
            return None
        return ModuleSpec(fullname, _Same(first))

    def _is_here(self, child: str) -> bool:
        return not child or any(
            os.path.exists(os.path.join(folder, child + end))
            for folder in self._folders
            for end in ("", ".py")
        )


def install(second: str, first: str, folders: Iterable[str]) -> None:
    """From here on ``second.x`` means ``first.x``, but for what is in these folders."""
    sys.meta_path.insert(0, _Finder(second, first, folders))
