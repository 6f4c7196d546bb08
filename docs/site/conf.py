# SPDX-License-Identifier: Apache-2.0
"""The site of the documentation: what Sphinx needs to know. `make docs` builds it.

Sphinx reads the tree itself, from its root: pages link to each other, to the README and to
files of the source by the same paths as on disk. Nothing is imported: the references are read
from the sources (python_reference.py, c_reference.py).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))


def _version() -> str:
    """The version has one home: the public header."""
    header = (ROOT / "include/rueda/rueda.h").read_text(encoding="utf-8")
    parts = re.findall(r"#define RUEDA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
    return ".".join(parts)


project = "Rueda"
author = "The authors of Rueda"
copyright = author
version = release = _version()

extensions = ["myst_parser", "python_reference", "c_reference"]
root_doc = "docs/index"
include_patterns = [
    "*.md", "docs/*.md", "docs/api/*.md", "docs/internals/*.md", "examples/README.md",
    "deploy/README.md",
]  # fmt: skip
source_suffix = {".md": "markdown"}

# Links to a heading are checked, as are those to pages and files.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nitpicky = True
# Types of other libraries, which are not documented here.
nitpick_ignore_regex = [
    ("c:identifier", r"size_t|bool|u?int\d+_t"),
    ("py:class", r"(torch|tf|keras|os)\..*|Tensor|timedelta|TracebackType"),
    # Aliases and classes that are not public.
    ("py:class", r"_\w+|Item|RuedaWork|RankError"),
]

# A longer signature has each argument on a line of its own.
maximum_signature_line_length = 88

# Blocks without a language are commands and messages.
highlight_language = "none"
pygments_style = "friendly"

html_theme = "furo"
html_title = f"Rueda {release}"
html_static_path = []
html_copy_source = False
html_show_sourcelink = False
# The search of Sphinx is a script and an index beside the pages; it asks no server.
html_last_updated_fmt = None
