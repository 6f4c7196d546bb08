# SPDX-License-Identifier: Apache-2.0
"""The site of the documentation: pages, references and messages, without building it.

`make docs` builds it, and fails on any warning.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from messages import messages

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "docs" / "site"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md")),
    ROOT / "deploy" / "README.md",
    ROOT / "examples" / "README.md",
]
sys.path.insert(0, str(SITE))

import check_site  # noqa: E402
import read_header  # noqa: E402
import read_python  # noqa: E402


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# ---- Pages ------------------------------------------------------------------


def test_every_page_is_in_the_index_once() -> None:
    index = ROOT / "docs" / "index.md"
    listed = []
    for tree in re.findall(r"^```\{toctree\}\n(.*?)^```$", index.read_text("utf-8"), re.M | re.S):
        for entry in (line for line in tree.splitlines() if line and not line.startswith(":")):
            start = ROOT if entry.startswith("/") else index.parent
            listed.append(f"{(start / entry.lstrip('/')).relative_to(ROOT)}.md")
    assert sorted(listed) == sorted(name_of(page) for page in PAGES if page != index)


def test_pages_that_sphinx_reads_are_those_of_the_tree() -> None:
    conf = (SITE / "conf.py").read_text("utf-8")
    patterns = re.findall(r'"([^"]+\.md)"', conf[conf.index("include_patterns") :].split("]")[0])
    assert sorted({page for pattern in patterns for page in ROOT.glob(pattern)}) == sorted(PAGES)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    made: list[str] = []
    for heading in re.findall(r"^#{1,4} (.+)$", text, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        before = sum(1 for one in made if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", one))
        made.append(f"{slug}-{before}" if slug in made else slug)
    return frozenset(made)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_headings(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", page.read_text("utf-8"))
    wrong = []
    for file, anchor in links:
        target = (page.parent / file).resolve() if file else page
        if target.suffix == ".md" and anchor not in anchors(target):
            wrong.append(f"{file}#{anchor}")
    assert wrong == []


# ---- References -------------------------------------------------------------

MODULES = {
    "torch.md": ["rueda.torch", "rueda.torch.elastic", "rueda.torch.c10d"],
    "tensorflow.md": ["rueda.tensorflow", "rueda.tensorflow.elastic"],
    "keras.md": ["rueda.keras", "rueda.keras.callbacks", "rueda.keras.elastic"],
    "rueda.md": [
        "rueda", "rueda.elastic", "rueda.data", "rueda.places", "rueda.common.exceptions",
    ],
}
PAIRS = [(page, module) for page, modules in MODULES.items() for module in modules]
SHARED = {
    "CommitStateCallback", "StepCallback", "UpdateBatchStateCallback", "UpdateEpochStateCallback",
}  # fmt: skip


def listed_in(page: str, module: str) -> list[str] | None:
    """The names that a page lists of a module; None: all of its public ones."""
    text = (ROOT / "docs" / "api" / page).read_text("utf-8")
    if f".. python-module:: {module}\n" in text:
        return None
    lists = re.findall(rf"^\.\. python-names:: {re.escape(module)}\n\n((?: +.*\n)+)", text, re.M)
    return " ".join(lists).split()


@pytest.mark.parametrize(("page", "module"), PAIRS)
def test_the_reference_has_every_public_name_once(page: str, module: str) -> None:
    listed = listed_in(page, module)
    if listed is None:
        return
    public = set(read_python.load(module).public()) - {"__version__"}
    if module == "rueda.keras.elastic":
        public -= SHARED  # they are among the callbacks
    modules = {name for name in public if read_python.load(module).find(name).kind == "module"}
    assert sorted(listed) == sorted(public - modules)


@pytest.mark.parametrize(("page", "module"), PAIRS)
def test_every_public_name_has_words(page: str, module: str) -> None:
    source = read_python.load(module)
    names = [name for name in source.public() if name != "__version__"]
    assert names
    assert [name for name in names if not source.find(name).doc.strip()] == []


def test_reductions_of_torch_say_what_they_are_by_default() -> None:
    torch = read_python.load("rueda.torch")
    for name in torch.public():
        if re.match(r"(grouped_)?(allreduce|reducescatter)", name):
            doc = torch.find(name).doc
            assert "average" in doc or ":func:`" in doc, name


def test_names_are_followed_to_where_they_are_made() -> None:
    torch = read_python.load("rueda.torch")
    assert torch.find("rank").module.name == "rueda._core"
    assert torch.find("init").doc.startswith("Join the job")
    late = read_python.load("rueda.tensorflow").find("Strategy")
    assert late.module.name == "rueda.tensorflow.strategy"
    with pytest.raises(read_python.NotFound):
        torch.find("no_such_name")


def test_the_reference_of_c_has_every_function_and_type() -> None:
    header = read_header.HEADER.read_text("utf-8")
    items = [item for section in read_header.read() for item in section.items]
    functions = {
        re.findall(r"\b(rueda_\w+)\(", one)[0] for item in items for one in item.functions
    }
    assert functions == set(re.findall(r"^RUEDA_API [^;]*?\b(rueda_\w+)\(", header, re.M))
    types = {name for item in items for _, name in item.types}
    assert types >= set(re.findall(r"^struct (rueda_\w+) \{", header, re.M))
    assert types >= set(re.findall(r"^typedef enum (rueda_\w+) \{", header, re.M))


# ---- Messages ---------------------------------------------------------------


def quoted_messages() -> Iterator[str]:
    text = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    for table in re.split(r"^## ", text, flags=re.M)[1:]:
        for row in [line for line in table.splitlines() if line.startswith("| `")]:
            yield row[3 : row.index("` |")]


def test_there_are_messages_to_look_for() -> None:
    assert len(list(quoted_messages())) >= 40


@pytest.mark.parametrize("message", list(quoted_messages()))
def test_a_message_that_is_explained_is_one_of_ours(message: str) -> None:
    assert len(message.replace("…", "")) > 15
    assert any(message in one for one in messages())


# ---- The built site ---------------------------------------------------------


def test_what_a_page_would_load_from_the_net_is_found(tmp_path: Path) -> None:
    (tmp_path / "good.html").write_text(
        '<a href="https://example.org/">a link</a><img src="here.png">'
        '<link rel="stylesheet" href="_static/x.css">',
        encoding="utf-8",
    )
    assert check_site.findings(tmp_path) == []
    (tmp_path / "bad.html").write_text('<script src="//example.org/x.js"></script>', "utf-8")
    (tmp_path / "bad.css").write_text("@font-face {src: url(https://example.org/f)}", "utf-8")
    found = check_site.findings(tmp_path)
    assert len(found) == 2
    assert all("example.org" in one for one in found)
