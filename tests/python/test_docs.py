# SPDX-License-Identifier: Apache-2.0
"""The documentation: what it shows compiles, what it names exists."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Callable

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LIMIT_S = 60

# Fragments stand in a function of these arguments.
HEAD = """
#include <rueda/rueda.h>
#include <stdio.h>
#include <stdlib.h>
void fragment(rueda_ctx *ctx, float *send, float *recv, size_t count,
              rueda_status status);
void fragment(rueda_ctx *ctx, float *send, float *recv, size_t count,
              rueda_status status)
{
"""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def sources() -> str:
    """All of the C code, as one text."""
    files = [*(ROOT / "include").rglob("*.h"), *(ROOT / "src").rglob("*.[ch]")]
    return "\n".join(file.read_text(encoding="utf-8") for file in sorted(files))


def c_blocks() -> list:
    """Every block marked as C, named by its page and line."""
    blocks = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(r"^```c\n(.*?)^```$", text, re.M | re.S):
            line = text.count("\n", 0, found.start(1)) + 1
            blocks.append(pytest.param(found.group(1), id=f"{name_of(page)}:{line}"))
    return blocks


@pytest.mark.parametrize("block", c_blocks())
def test_c_block_compiles(block: str, need_tool: Callable[[str], str]) -> None:
    program = block if "int main" in block else f"{HEAD}{block}}}\n"
    done = subprocess.run(
        [need_tool("gcc"), "-std=c11", "-Wall", "-Werror", "-fsyntax-only",
         f"-I{ROOT / 'include'}", "-x", "c", "-"],
        input=program,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("page", "example"),
    [("README.md", "hello_allreduce.c"), ("docs/named-tensors.md", "named_tensors.c")],
)
def test_examples_that_are_shown_are_whole(page: str, example: str) -> None:
    source = (ROOT / "examples" / "c" / example).read_text(encoding="utf-8")
    code = source[source.index("#include") :]
    assert f"```c\n{code}```" in (ROOT / page).read_text(encoding="utf-8")


def test_page_of_settings_is_up_to_date(need_tool: Callable[[str], str]) -> None:
    done = subprocess.run(
        [need_tool("rueda"), "info", "--config", "--markdown"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    page = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    assert page == done.stdout, "make it again: rueda info --config --markdown >docs/config.md"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_functions_that_are_named_exist(page: Path) -> None:
    """Functions of ours anywhere; on pages about the source every function of C."""
    text = page.read_text(encoding="utf-8")
    is_of_source = page.name == "ARCHITECTURE.md" or page.parent.name == "internals"
    ours = r"[a-z]\w*" if is_of_source and page.name != "python.md" else r"rueda_\w+"
    named = sorted(set(re.findall(rf"`({ours})\(\)`", text)))
    assert [name for name in named if not re.search(rf"\b{name}\s*\(", sources())] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_constants_and_settings_that_are_named_exist(page: Path) -> None:
    named = sorted(set(re.findall(r"\bRUEDA_[A-Z0-9_]+\b", page.read_text(encoding="utf-8"))))
    # Statuses, types and reductions are made of a list, without their prefix.
    made = set(re.findall(r"\bX\((\w+),", sources()))
    unknown = [
        name
        for name in named
        if name.removeprefix("RUEDA_") not in made and not re.search(rf"\b{name}\b", sources())
    ]
    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[\w-]+)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_source_files_that_are_named_exist(page: Path) -> None:
    """Files by their path from the root of the tree."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`((?:src|include|python|tests|tools)/[\w./-]+\.\w+)`", text)
    assert [name for name in sorted(set(named)) if not (ROOT / name).exists()] == []


def test_the_glossary_has_one_row_for_each_term() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+?) \|", text, re.M)
    terms = [part for row in rows if row != "term" for part in row.split(", ")]
    assert len(terms) > 100
    assert sorted({term for term in terms if terms.count(term) > 1}) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_make_targets_that_are_named_exist(page: Path) -> None:
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    named = sorted(set(re.findall(r"(?:`|^ {4})make ([a-z][a-z0-9-]*)", text, re.M)))
    assert [name for name in named if not re.search(rf"^{name}:", rules, re.M)] == []


# ---- Promises and the tests that show them -----------------------------------

PROMISES = [ROOT / "SECURITY.md", ROOT / "docs" / "failure.md"]
NAMED_TEST = re.compile(r"`(tests/[\w/.-]+)::(\w+)`")

# Sections that promise nothing, or nothing that a test could show.
WITHOUT_TESTS = {"Reporting", "What is not defended"}


def sections(page: Path) -> list[tuple[str, str]]:
    """Heading and text of each."""
    parts = re.split(r"^## (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tests_that_are_named_exist(page: Path) -> None:
    """As functions that their file also runs."""
    missing = []
    for file, name in NAMED_TEST.findall(page.read_text(encoding="utf-8")):
        text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).exists() else ""
        in_python = re.search(rf"^def {name}\(", text, re.M)
        in_c = re.search(rf"^(static void )?{name}\(void \*\*state\)", text, re.M)
        if not (in_python or (in_c and len(re.findall(rf"\b{name}\b", text)) > 1)):
            missing.append(f"{file}::{name}")
    assert missing == []


@pytest.mark.parametrize("page", PROMISES, ids=name_of)
def test_every_section_of_promises_names_a_test(page: Path) -> None:
    found = sections(page)
    assert len(found) > 5
    without = [name for name, text in found if not NAMED_TEST.search(text)]
    assert [name for name in without if name not in WITHOUT_TESTS] == []


def test_every_row_of_the_threat_table_names_a_test() -> None:
    text = dict(sections(ROOT / "SECURITY.md"))["The model in short"]
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 6
    without = [row.split("|")[1].strip() for row in rows if not NAMED_TEST.search(row)]
    assert without == ["root of a host"]
