# SPDX-License-Identifier: Apache-2.0
"""tools/check-english finds its patterns, and its numbers only fall."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check-english"


def load_script():
    """The script has no .py in its name, and must leave no compiled copy beside itself."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader = SourceFileLoader("check_english", str(SCRIPT))
        module = module_from_spec(spec_from_loader("check_english", loader))
        sys.modules["check_english"] = module
        loader.exec_module(module)
        return module
    finally:
        sys.dont_write_bytecode = before


english = load_script()


def names(source: str) -> list[str]:
    return [hit.name for hit in english.hits_in("a.c", source)]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/* Who sleeps is woken. */", "Who ..."),
        ("/* It waits. Who\n * has joined is counted. */", "Who ..."),
        ("# It waits, for to\n# wake it costs more.", "for to"),
        ("// It waits in\n// vain.", "in vain"),
        ('puts("it waits in "\n     "vain");', "in vain"),
        ('puts("it waits in\\n"\n     "vain");', "in vain"),
        ("It begins anew.", "anew"),
        ("False for\n    want of memory.", "for want of"),
        ("sets parted by blanks", "parted by"),
        ("/* Whoever holds the token drives. */", "nobody ..."),
        ("It waits for\nsomebody.", "nobody ..."),
        ("What is under\n * way ends.", "under way"),
        ("| likewise |", "likewise"),
        ("It mostly waits.", "mostly"),
        ("Take so many bytes.", "so many"),
        ("A rank that waited for so long.", "so many"),
        ("This is no part of it.", "is no ... of"),
        ("They are\nno table of ranks.", "is no ... of"),
        ("That was no valid name of a host.", "is no ... of"),
    ],
)
def test_what_it_finds(source: str, name: str) -> None:
    assert names(source) == [name]


@pytest.mark.parametrize(
    "source",
    [
        "/* Who has joined? */",
        "/* Those who sleep are woken. */",
        "for to in after:",
        "It must be waited for to its end.",
        "It is in vainly named files; a renewal.",
        "There is no list of hosts, and there are no copies of it.",
        "The rank that died is no longer there.",
        "for want. Of memory.",
        "There are so many names that the table is full.",
        "It stays so long as it is used.",
        "No rank is on its way.",
        "/* for */ /* to */",
    ],
)
def test_what_it_leaves(source: str) -> None:
    assert names(source) == []


def test_where_a_hit_is() -> None:
    (hit,) = english.hits_in("src/a.c", "int a;\n/* Begin\n * anew. */\n")
    assert str(hit) == "src/a.c:3: anew: * anew. */"


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("README.md", "."),
        ("docs/man/rueda.1", "docs"),
        ("tests/unit/os/a.c", "tests"),
        ("src/CMakeLists.txt", "src"),
        ("src/transport/tcp/hub.c", "src/transport"),
    ],
)
def test_folders(path: str, folder: str) -> None:
    assert english.folder_of(path) == folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two hits in src/os, one in the root, and numbers that agree."""
    for name, text in [
        ("README.md", "Begin anew.\n"),
        ("src/os/a.c", "/* Begin anew, in vain. */\n"),
        ("src/build/a.c", "/* Begin anew. */\n"),
        ("tools/english.txt", "# a comment\n. 1\nsrc/os 2  # another\n"),
    ]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/data").write_bytes(b"\xff anew")
    return tmp_path


def run(tree: Path, *words: str) -> int:
    return english.main(["--root", str(tree), *words])


def test_numbers_that_agree(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tree) == 0
    assert capsys.readouterr().out == ""


def test_more_are_a_finding(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "src/os/b.c").write_text("/* Who waits is told. */\n")
    for words in ([], ["--lower"]):
        assert run(tree, *words) == 1
        out = capsys.readouterr().out.splitlines()
        assert out[-1] == "src/os: english: 3 turns of phrase, at most 2: reword"
        assert out[2] == "src/os/b.c:1: Who ...: /* Who waits is told. */"
    (tree / "src/os/b.c").unlink()
    (tree / "docs/a.md").write_text("Begin anew.\n")
    assert run(tree, "--lower") == 1  # a folder that has no number has none to spare
    assert "docs: english: 1 turns of phrase, at most 0" in capsys.readouterr().out


def test_fewer_are_a_finding_until_the_number_is_lower(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "src/os/a.c").write_text("/* Begin again, in vain. */\n")
    (tree / "README.md").write_text("Begin again.\n")
    assert run(tree) == 1
    out = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in out] == [".", "src/os"]
    assert "lower it" in out[1]
    assert run(tree, "--lower") == 0
    assert english.read_numbers(tree / "tools/english.txt") == {"src/os": 1}


def test_list(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tree, "--list") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert run(tree, "--list", "src/os") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
