# SPDX-License-Identifier: Apache-2.0
"""The messages of the library, the programs and the Python package, out of their sources.

What is filled in, such as ``%d`` or ``{rank}``, is written "…" here, as in the docs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)\'|/\*.*?\*/', re.S)
_FORMAT = re.compile(r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?(?:hh|h|ll|l|z|j|t)?[diouxXcsfgeEGp]")
_BETWEEN = re.compile(r"(?:\s|\\\n|PRI\w+)*")
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\", "\\t": "\t"}


def _of_c(text: str) -> Iterator[str]:
    """Literals that stand one behind another, perhaps with PRIu64 between them, are one."""
    whole, end = "", -1
    for found in _LITERAL.finditer(text):
        if found.group(1) is None:
            continue
        between = text[end : found.start()] if end >= 0 else ""
        if end < 0 or not _BETWEEN.fullmatch(between):
            yield whole
            whole = ""
        elif "PRI" in between:
            whole = whole.rstrip("%0123456789") + "…"
        whole += re.sub(r'\\[n"\\t]', lambda escape: _ESCAPES[escape.group()], found.group(1))
        end = found.end()
    yield whole


def _of_python(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in docstrings:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.replace("{}", "…")
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            yield "".join(map(str, parts))


@cache
def messages() -> frozenset[str]:
    """Every text of the sources, on one line, without repeated blanks."""
    found: set[str] = set()
    for file in (ROOT / "src").rglob("*.[ch]"):
        text = file.read_text(encoding="utf-8")
        found.update(_FORMAT.sub("…", one).replace("%%", "%") for one in _of_c(text))
    for file in (ROOT / "python").rglob("*.py"):
        found.update(_of_python(file.read_text(encoding="utf-8")))
    return frozenset(" ".join(one.split()) for one in found)
