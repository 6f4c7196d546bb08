# SPDX-License-Identifier: Apache-2.0
"""The page of examples: it has each of them, and each is run in a test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")


def programs() -> list[str]:
    found = (one for suffix in ("py", "c", "ipynb") for one in EXAMPLES.rglob(f"*.{suffix}"))
    return sorted(one.relative_to(EXAMPLES).as_posix() for one in found)


def test_each_example_has_one_row_that_says_what_it_shows() -> None:
    rows = re.findall(r"^\| \[([\w./]+)\]\(([\w./]+)\) \| \S.* \|$", PAGE, re.M)
    assert all(name == link for name, link in rows)
    assert sorted(name for name, _ in rows) == programs()


def test_each_example_is_in_a_test_by_its_name() -> None:
    tests = "\n".join(one.read_text(encoding="utf-8")
                      for one in sorted((ROOT / "tests" / "python").glob("test_*.py"))
                      if one.name != Path(__file__).name)  # fmt: skip
    # Those in C are found by the folder.
    named = [one for one in programs() if not one.endswith(".c")]
    assert [one for one in named if not re.search(rf'\b{Path(one).stem}\b', tests)] == []
