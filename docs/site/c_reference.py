# SPDX-License-Identifier: Apache-2.0
"""The directive ``.. c-header::``: the public header, section by section."""

from __future__ import annotations

import re
from typing import Any

import read_header
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

# Words of a comment that are code or lead somewhere. The rest is escaped.
_WORD = re.compile(
    r"`(?P<code>[^`]+)`|\b(?P<function>rueda_\w+)\(\)|\bdocs/(?P<page>[\w-]+)\.md"
    r"|\b(?P<name>RUEDA_\w+\*?|rueda_\w+|\w+->\w+|\w+\[[^\]]*\])"
)


def link(found: re.Match[str]) -> str:
    if found["function"]:
        return rf"\ :c:func:`{found['function']}`\ "
    if found["page"]:
        return rf"\ :doc:`docs/{found['page']}.md </docs/{found['page']}>`\ "
    return rf"\ ``{found['code'] or found['name']}``\ "


def plain(text: str) -> str:
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def paragraph(text: str) -> list[str]:
    if any(line.startswith(" ") for line in text.splitlines()):
        return ["::", "", *[f"   {line}" for line in text.splitlines()], ""]
    parts, at = [], 0
    text = " ".join(text.split())
    for found in _WORD.finditer(text):
        parts += [plain(text[at : found.start()]), link(found)]
        at = found.end()
    return ["".join([*parts, plain(text[at:])]), ""]


def describe(item: read_header.Item) -> list[str]:
    """As reStructuredText: an object for its functions or types, then the comment and code."""
    words = [line for part in item.comment.split("\n\n") if part for line in paragraph(part)]
    if item.code:
        words += [".. code-block:: c", "", *[f"   {line}" for line in item.code.splitlines()], ""]
    inner = [f"   {line}".rstrip() for line in words]
    heads: list[str] = []
    if item.functions:
        heads = [line for _, name in item.types for line in (f".. c:type:: {name}", "")]
        heads += [f".. c:function:: {item.functions[0]}"]
        heads += [f"                 {more}" for more in item.functions[1:]]
    elif item.types:
        heads = [f".. c:{kind}:: {name}" for kind, name in item.types[:1]]
    elif item.macros and not item.comment:
        heads = [f".. c:macro:: {item.macros[0]}"]
    if not heads:
        return words
    return [*heads, "", *inner, ""]


class Header(Directive):
    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        env.note_dependency(str(read_header.HEADER))
        made: list[nodes.Node] = []
        for section in read_header.read():
            node = nodes.section(ids=[nodes.make_id(section.name)])
            node += nodes.title(section.name, section.name)
            lines = [line for item in section.items for line in describe(item)]
            self.state.nested_parse(StringList(lines, source="rueda.h"), 0, node)
            made.append(node)
        return made


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("c-header", Header)
    return {"parallel_read_safe": True}
