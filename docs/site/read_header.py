# SPDX-License-Identifier: Apache-2.0
"""The public header of the C library, cut into sections, and these into what they declare.

Each item is a comment and the declarations below it, up to the next empty line. A test
checks that no function of the header is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "include/rueda/rueda.h"

_SECTION = re.compile(r"^/\* ---- (.*?) -+ \*/$")
_FUNCTION = re.compile(r"^RUEDA_API (.*);$")
_TYPE = re.compile(r"^(?:typedef )?(struct|enum|union) (\w+) \{")
_TYPEDEF = re.compile(r"^typedef .*?\(?\*?\b(\w+)\)?(?:\(.*\))?;$")
_MACRO = re.compile(r"^#define (RUEDA_\w+)")


@dataclass
class Item:
    """A comment, and what it is about."""

    comment: str = ""
    functions: list[str] = field(default_factory=list)
    types: list[tuple[str, str]] = field(default_factory=list)  # "struct" or "type", name
    macros: list[str] = field(default_factory=list)
    code: str = ""  # what is not a function, as it stands there


@dataclass
class Section:
    name: str
    items: list[Item] = field(default_factory=list)


def words_of(comment: list[str]) -> str:
    """The text of ``/* ... */``, in paragraphs."""
    text = "\n".join(comment).strip().removeprefix("/*").removesuffix("*/")
    lines = [re.sub(r"^ ?\* ?", "", line) for line in text.split("\n")]
    return "\n".join(line.rstrip() for line in lines).strip()


def blocks_of(lines: list[str]) -> list[list[str]]:
    """Parts between empty lines that are not inside of braces or of a macro."""
    blocks: list[list[str]] = [[]]
    depth = 0
    for line in lines:
        depth += line.count("{") - line.count("}")
        if line.strip() or depth > 0:
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def statements_of(lines: list[str]) -> list[str]:
    """Declarations of a block, each on one line; macros with their own lines."""
    found: list[str] = []
    is_open = False
    depth = 0
    for line in lines:
        if is_open:
            found[-1] += "\n" + line
        else:
            found.append(line)
        depth += line.count("{") - line.count("}")
        ends = found[-1].startswith("#") or line.rstrip().endswith((";", "*/"))
        is_open = depth > 0 or line.endswith("\\") or not ends
    return found


def item_of(comment: list[str], lines: list[str]) -> Item:
    item = Item(words_of(comment) if comment else "")
    code = []
    for statement in statements_of(lines):
        flat = " ".join(statement.split())
        if _FUNCTION.match(flat):
            item.functions.append(_FUNCTION.sub(r"\1", flat))
            continue
        code.append(statement)
        if kind := _TYPE.match(flat):
            is_typedef = flat.startswith("typedef")
            item.types.append(("type" if is_typedef else kind.group(1), kind.group(2)))
        elif name := _TYPEDEF.match(flat):
            item.types.append(("type", name.group(1)))
        elif name := _MACRO.match(flat):
            item.macros.append(name.group(1))
    item.code = "\n".join(code)
    return item


def read(header: Path = HEADER) -> list[Section]:
    text = header.read_text(encoding="utf-8")
    start = text.index("#define RUEDA_API")
    end = text.index("#ifdef __cplusplus", start)
    lines = text[start:end].splitlines()[1:]
    sections = [Section("Version")]
    body: list[str] = []
    for line in [*lines, "/* ---- End -- */"]:
        title = _SECTION.match(line)
        if title is None:
            body.append(line)
            continue
        for block in blocks_of(body):
            sections[-1].items += items_of(block)
        body = []
        sections.append(Section(title.group(1)))
    return sections[:-1]


def items_of(block: list[str]) -> list[Item]:
    """Of a block that begins with a comment or has none; comments end with ``*/``."""
    comment: list[str] = []
    if block[0].startswith("/*"):
        while not (comment and comment[-1].endswith("*/")):
            comment.append(block.pop(0))
    return [item_of(comment, block)]
