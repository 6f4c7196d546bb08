# SPDX-License-Identifier: Apache-2.0
"""The source distribution: it is whole, and makes the wheel, byte for byte."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 500

if not (ROOT / ".venv" / "bin" / "python").exists():
    pytest.skip("missing tool: .venv of tools/setup python", allow_module_level=True)


def run(command: list[str], cwd: Path, **more: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=LIMIT_S,
                          env={**environment, **more}, stdin=subprocess.DEVNULL)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist() -> Path:
    run(["tools/wheel", "--sdist"], ROOT)
    (found,) = (ROOT / "dist").glob("rueda-*.tar.gz")
    return found


@pytest.fixture(scope="module")
def tree(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked where nothing else is."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(sdist) as archive:
        if sys.version_info >= (3, 12):
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
    (root,) = folder.iterdir()
    return root


def test_it_has_the_sources_and_nothing_that_was_built(tree: Path) -> None:
    for name in ("PKG-INFO", "LICENSE", "NOTICE", "Makefile", "tools/wheel", "tests/unit",
                 "src/api", "examples/README.md", "cmake/sbom.cdx.json.in"):  # fmt: skip
        assert (tree / name).exists(), name
    bad = [one for one in tree.rglob("*")
           if one.suffix in (".so", ".o", ".a", ".pyc", ".whl") or one.name == "__pycache__"]
    assert bad == []  # fmt: skip
    assert not any((tree / name).exists() for name in ("build", "dist", ".venv", ".git"))


def test_the_links_of_its_pages_lead_to_its_files(tree: Path) -> None:
    pages = [*tree.glob("*.md"), *(tree / "docs").rglob("*.md"), tree / "examples" / "README.md"]
    broken = [
        f"{page.relative_to(tree)}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[\w-]+)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert len(pages) > 30 and broken == []


def contents(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {one.filename: f"{hashlib.sha256(archive.read(one)).hexdigest()} "
                              f"{one.date_time} {one.external_attr:o}"
                for one in archive.infolist()}  # fmt: skip


def test_it_builds_the_same_wheel_as_the_tree(tree: Path) -> None:
    """In another folder, with other permissions and at another time."""
    if not (ROOT / "build" / ".stamps" / "wheel").exists():
        pytest.skip("missing tool: dist/rueda-*.whl")
    (tree / ".venv").symlink_to(ROOT / ".venv")
    run(["sh", "-c", "umask 077 && chmod -R go-rwx . && tools/wheel"], tree, TZ="Asia/Tokyo")
    stamps = [(one / "build/.stamps/wheel").read_text() for one in (ROOT, tree)]
    assert stamps[0] == stamps[1], "dist/*.whl is of other sources; run tools/wheel"
    (other,) = (tree / "dist").glob("rueda-*.whl")
    mine = ROOT / "dist" / other.name
    one, two = contents(mine), contents(other)
    assert {name for name in {*one, *two} if one.get(name) != two.get(name)} == set()
    assert other.read_bytes() == mine.read_bytes()
