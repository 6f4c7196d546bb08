# SPDX-License-Identifier: Apache-2.0
"""Directives for the Python reference; read_python.py finds what they show.

.. python-names:: rueda.torch       the names that follow, by their docstrings
.. python-module:: rueda.data       all names of ``__all__``
"""

from __future__ import annotations

import ast
from typing import Any

import read_python
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.util.logging import getLogger

logger = getLogger(__name__)


def indent(text: str) -> list[str]:
    return [f"   {line}".rstrip() for line in text.splitlines()]


def describe_function(directive: str, name: str, found: read_python.Found) -> list[str]:
    skips = found.is_method and not read_python.has_decorator(found.node, "staticmethod")
    shown = read_python.signature(found.node, skips)
    lines = [f".. py:{directive}:: {name}{shown}"]
    if read_python.has_decorator(found.node, "staticmethod"):
        lines.append("   :staticmethod:")
    if read_python.has_decorator(found.node, "classmethod"):
        lines.append("   :classmethod:")
    return [*lines, "", *indent(found.doc), ""]


def describe_member(node: ast.AST, module: read_python.Module) -> list[str]:
    """A public method or property of a class that has words of its own."""
    if not isinstance(node, read_python.Function) or node.name.startswith("_"):
        return []
    doc = ast.get_docstring(node)
    if not doc:
        return []
    if read_python.has_decorator(node, "property"):
        returns = "" if node.returns is None else ast.unparse(node.returns)
        lines = [f".. py:property:: {node.name}"]
        lines += [f"   :type: {returns}"] if returns else []
        return [*lines, "", *indent(doc), ""]
    found = read_python.Found("function", module, node, doc, is_method=True)
    return describe_function("method", node.name, found)


def describe_class(name: str, found: read_python.Found) -> list[str]:
    assert isinstance(found.node, ast.ClassDef)
    shown = ""
    inner: list[str] = []
    for node in found.node.body:
        if isinstance(node, read_python.Function) and node.name == "__init__":
            shown = read_python.signature(node, True).removesuffix(" -> None")
            inner = indent(ast.get_docstring(node) or "")
    members = [line for node in found.node.body for line in describe_member(node, found.module)]
    lines = [f".. py:class:: {name}{shown}", "", *indent(found.doc), "", *inner, ""]
    return [*lines, *indent("\n".join(members)), ""]


def describe(module: str, name: str) -> list[str]:
    """One name, as reStructuredText."""
    found = read_python.load(module).find(name)
    if not found.doc:
        raise read_python.NotFound(f"{module}.{name} has no docstring")
    if found.kind == "function":
        return describe_function("function", name, found)
    if found.kind == "class":
        return describe_class(name, found)
    if found.kind == "module":
        inner = found.module.name
        return [f"See :py:mod:`{inner}`.", ""]
    value = getattr(found.node, "value", None)
    lines = [f".. py:data:: {name}"]
    if isinstance(value, ast.Constant):
        lines.append(f"   :value: {value.value!r}")
    return [*lines, "", *indent(found.doc), ""]


class Names(Directive):
    """``.. python-names:: module`` with a list of names."""

    required_arguments = 1
    has_content = True

    def names(self, module: str) -> list[str]:
        return " ".join(self.content).split()

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        env = self.state.document.settings.env
        lines = [f".. py:currentmodule:: {module}", ""]
        for name in self.names(module):
            try:
                lines += describe(module, name)
                env.note_dependency(str(read_python.find_file(module)))
            except read_python.NotFound as error:
                logger.warning("%s", error, location=(env.docname, self.lineno))
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, source=module), 0, holder)
        return list(holder.children)


class WholeModule(Names):
    """``.. python-module:: module``: its docstring, and all names of ``__all__``."""

    has_content = False

    def names(self, module: str) -> list[str]:
        return read_python.load(module).public()

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        lines = [f".. py:module:: {module}", "", *read_python.load(module).doc.splitlines(), ""]
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, source=module), 0, holder)
        return [*holder.children, *super().run()]


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("python-names", Names)
    app.add_directive("python-module", WholeModule)
    # Sources that have changed are not seen as dependencies of all pages: read these again.
    app.connect("env-before-read-docs", lambda app, env, names: names.extend(
        name for name in env.found_docs if name.startswith("docs/api/") and name not in names
    ))  # fmt: skip
    return {"parallel_read_safe": True}
