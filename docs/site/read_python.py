# SPDX-License-Identifier: Apache-2.0
"""The public names of the Python package, found in its sources without importing it.

An import would take every framework, and the compiled library. Here a name is followed
through imports and assignments to the function or class behind it.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[2] / "python"

Function = (ast.FunctionDef, ast.AsyncFunctionDef)


class NotFound(Exception):
    """A name leads to nothing that can be shown."""


@dataclass(frozen=True)
class Found:
    """What a name stands for: a function, a class, a module, or a value."""

    kind: str  # "function", "class", "module" or "data"
    module: Module
    node: ast.AST
    doc: str
    is_method: bool = False  # a function whose first argument is not shown


def find_file(module: str) -> Path | None:
    path = PYTHON.joinpath(*module.split("."))
    # The compiled module is known by its stub.
    for file in (path / "__init__.py", path.with_suffix(".py"), path.with_suffix(".pyi")):
        if file.is_file():
            return file
    return None


def name_of_package(module: str) -> str:
    """The package that a relative import of this module starts from."""
    file = find_file(module)
    is_package = file is not None and file.name == "__init__.py"
    return module if is_package else module.rpartition(".")[0]


@cache
def load(module: str) -> Module:
    return Module(module)


class Module:
    """One file: what its names are bound to at its top level."""

    def __init__(self, name: str) -> None:
        file = find_file(name)
        if file is None:
            raise NotFound(f"there is no module {name} under {PYTHON}")
        self.name = name
        self.lines = file.read_text(encoding="utf-8").splitlines()
        self.tree = ast.parse("\n".join(self.lines), file.as_posix())
        self.doc = ast.get_docstring(self.tree) or ""
        self.bound: dict[str, ast.AST] = {}
        self.imported: dict[str, tuple[str, str]] = {}  # name: module, and name there
        self.stars: list[str] = []
        self.docs: dict[str, ast.expr] = {}  # name.__doc__ = ...
        for node in self.tree.body:
            self._bind(node)

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, (*Function, ast.ClassDef)):
            self.bound[node.name] = node
        elif isinstance(node, ast.ImportFrom):
            self._bind_import(node)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            self.bound[node.target.id] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.bound[target.id] = node
                elif isinstance(target, ast.Attribute) and target.attr == "__doc__":
                    self.docs[ast.unparse(target.value)] = node.value

    def _bind_import(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            parts = name_of_package(self.name).split(".")
            parts = parts[: len(parts) - node.level + 1]
            base = ".".join([*parts, base] if base else parts)
        if base.split(".")[0] != "rueda":
            return
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(base)
            else:
                self.imported[alias.asname or alias.name] = (base, alias.name)

    # ---- Names --------------------------------------------------------------

    def public(self) -> list[str]:
        """The names of ``__all__``, with those of other modules that it takes over."""
        if "__all__" in self.imported:
            return self._at("__all__").public()
        value = getattr(self.bound.get("__all__"), "value", None)
        if not isinstance(value, (ast.List, ast.Tuple)):
            raise NotFound(f"{self.name} has no list __all__")
        names: list[str] = []
        for item in value.elts:
            if isinstance(item, ast.Starred):
                assert isinstance(item.value, ast.Attribute), ast.unparse(item)
                names += self._at(ast.unparse(item.value.value)).public()
            else:
                names.append(ast.literal_eval(item))
        return sorted(set(names))

    def _at(self, name: str) -> Module:
        """The module that this name has been imported as, or from."""
        base, there = self.imported[name]
        inner = f"{base}.{there}"
        return load(inner if find_file(inner) else base)

    def find(self, name: str) -> Found:
        """What a name of this module stands for."""
        if name in self.bound:
            return self._find_bound(name)
        if name in self.imported:
            base, there = self.imported[name]
            if find_file(f"{base}.{there}"):
                module = load(f"{base}.{there}")
                return Found("module", module, module.tree, module.doc)
            return load(base).find(there)
        for base in self.stars:
            try:
                return load(base).find(name)
            except NotFound:
                continue
        late = self._find_late(name)
        if late is not None:
            return late
        raise NotFound(f"{self.name} has no {name}")

    def _find_late(self, name: str) -> Found | None:
        """A module of a package, or a name that ``__getattr__()`` imports when it is asked for."""
        inner = f"{self.name}.{name}"
        if find_file(inner):
            module = load(inner)
            return Found("module", module, module.tree, module.doc)
        table = getattr(self.bound.get("_LATE"), "value", None)
        if table is not None:
            late = ast.literal_eval(table)
            if name in late:
                return load(f"{name_of_package(self.name)}.{late[name]}").find(name)
        hook = self.bound.get("__getattr__")
        for node in ast.walk(hook) if hook is not None else ():
            if isinstance(node, ast.ImportFrom) and name in [one.name for one in node.names]:
                assert node.level == 1 and node.module
                return load(f"{name_of_package(self.name)}.{node.module}").find(name)
        return None

    def _find_bound(self, name: str) -> Found:
        node = self.bound[name]
        if isinstance(node, Function):
            return Found("function", self, node, self._doc(name, node))
        if isinstance(node, ast.ClassDef):
            return Found("class", self, node, self._doc(name, node))
        value = getattr(node, "value", None)
        if isinstance(value, (ast.Attribute, ast.Name)):
            try:
                return self._follow(value)
            except NotFound:
                pass
        return Found("data", self, node, self._comment_above(node.lineno))

    def _follow(self, value: ast.expr) -> Found:
        """An expression such as ``name``, or ``name.method`` of an instance or a class."""
        if isinstance(value, ast.Name):
            return self.find(value.id)
        if not isinstance(value, ast.Attribute):
            raise NotFound(ast.unparse(value))
        owner = self._follow(value.value)
        if owner.kind == "module":
            return owner.module.find(value.attr)
        made_by = getattr(owner.node, "value", None)
        if owner.kind == "data" and isinstance(made_by, ast.Call):
            owner = owner.module._follow(made_by.func)
        for node in getattr(owner.node, "body", ()):
            if isinstance(node, Function) and node.name == value.attr:
                doc = ast.get_docstring(node) or ""
                return Found("function", owner.module, node, doc, is_method=True)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == value.attr:
                return owner.module._follow(self._unwrapped(node.value))
        raise NotFound(ast.unparse(value))

    @staticmethod
    def _unwrapped(value: ast.expr) -> ast.expr:
        """``f`` of ``staticmethod(f)``."""
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "staticmethod":
            return value.args[0]
        return value

    # ---- Words --------------------------------------------------------------

    def _doc(self, name: str, node: ast.AST) -> str:
        doc = ast.get_docstring(node)  # type: ignore[arg-type]
        given = self.docs.get(name)
        for inner in getattr(node, "body", ()):
            if isinstance(inner, ast.Assign) and ast.unparse(inner.targets[0]) == "__doc__":
                given = inner.value
        if not doc and given is not None:
            doc = self._given_doc(given)
        return doc or ""

    def _given_doc(self, given: ast.expr) -> str:
        """What ``name.__doc__ = ...`` stands for: ``other.__doc__``, or a string's name."""
        if isinstance(given, ast.Attribute):
            return self._follow(given.value).doc
        value = getattr(self._follow(given).node, "value", None)
        assert isinstance(value, ast.Constant), ast.unparse(given)
        return inspect.cleandoc(str(value.value))

    def _comment_above(self, line: int) -> str:
        """The lines ``#: ...`` above a value."""
        words: list[str] = []
        for text in reversed(self.lines[: line - 1]):
            if not text.startswith("#: "):
                break
            words.insert(0, text[3:])
        return "\n".join(words)


# ---- Signatures -------------------------------------------------------------


def signature(node: ast.AST, skips_first: bool) -> str:
    """``(tensor: Tensor, name: str | None = None) -> Tensor``"""
    assert isinstance(node, Function)
    arguments = node.args
    if skips_first:
        first = [*arguments.posonlyargs, *arguments.args][1:]
        arguments = ast.arguments(
            posonlyargs=[], args=first, vararg=arguments.vararg, kwonlyargs=arguments.kwonlyargs,
            kw_defaults=arguments.kw_defaults, kwarg=arguments.kwarg, defaults=arguments.defaults,
        )  # fmt: skip
    text = f"({ast.unparse(arguments)})"
    return text if node.returns is None else f"{text} -> {ast.unparse(node.returns)}"


def has_decorator(node: ast.AST, *names: str) -> bool:
    decorators = [ast.unparse(one) for one in getattr(node, "decorator_list", ())]
    return any(one in names for one in decorators)
