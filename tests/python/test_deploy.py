# SPDX-License-Identifier: Apache-2.0
"""The recipes of packages: they can be read, and agree with the sources on names."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest
import rueda
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
DEBIAN = ROOT / "deploy" / "debian"
ABI = re.search(r"#define RUEDA_ABI (\d+)", (ROOT / "include/rueda/rueda.h").read_text()).group(1)


def needed_by_cmake() -> set[str]:
    """The packages that the build looks for by pkg-config."""
    files = [ROOT / "CMakeLists.txt", *(ROOT / "src").rglob("CMakeLists.txt")]
    text = "\n".join(file.read_text() for file in files)
    return set(re.findall(r"pkg_check_modules\(\w+ REQUIRED IMPORTED_TARGET ([\w.-]+)\)", text))


# ---- Debian ------------------------------------------------------------------


def paragraphs() -> list[dict[str, str]]:
    text = re.sub(r"^#.*\n", "", (DEBIAN / "control").read_text(), flags=re.M)
    return [dict(re.findall(r"^([\w-]+): *(.*(?:\n .*)*)", part, re.M))
            for part in text.split("\n\n")]  # fmt: skip


def test_debian_packages_have_the_version_and_the_abi_of_the_library() -> None:
    head = re.match(r"rueda \(([\d.]+)-\d+\) ", (DEBIAN / "changelog").read_text())
    assert head.group(1) == rueda.__version__
    names = [one["Package"] for one in paragraphs()[1:]]
    assert names == [f"librueda{ABI}", "librueda-dev", "rueda", "python3-rueda"]
    assert f"librueda.so.{ABI} " in (DEBIAN / "rules").read_text()


def test_debian_packages_all_have_their_files_named() -> None:
    listed = {one.stem for one in DEBIAN.glob("*.install")}
    assert listed == {one["Package"] for one in paragraphs()[1:]}


def test_the_build_has_what_it_needs_on_debian_and_in_conda(recipe: dict[str, Any]) -> None:
    names = {"libsodium": "libsodium-dev", "libuv": "libuv1-dev", "yaml-0.1": "libyaml-dev"}
    assert needed_by_cmake() == set(names)
    wanted = re.findall(r"[\w.+-]+(?=,|$| \()", paragraphs()[0]["Build-Depends"], re.M)
    assert set(names.values()) <= set(wanted)
    assert {"libsodium", "libuv", "yaml"} <= set(recipe["requirements"]["host"])


def test_the_rules_are_a_makefile(need_tool: Callable[[str], str], tmp_path: Path) -> None:
    include = Path("/usr/share/dpkg/architecture.mk")
    if not include.exists():
        pytest.skip(f"missing tool: {include} of dpkg-dev")
    done = subprocess.run([need_tool("make"), "--dry-run", "-f", str(DEBIAN / "rules"),
                           "execute_after_dh_auto_install"], capture_output=True, text=True,
                          timeout=30, cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"-linux-gnu/librueda.so.{ABI} " in done.stdout


# ---- conda -------------------------------------------------------------------


@pytest.fixture
def recipe() -> dict[str, Any]:
    """As conda-build reads it: Jinja, then lines that are for other systems, then YAML."""
    jinja2 = pytest.importorskip("jinja2", reason="missing tool: jinja2")
    text = (ROOT / "deploy" / "conda" / "meta.yaml").read_text()
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    text = environment.from_string(text).render(
        PYTHON="$PYTHON", compiler=lambda name: f"{name}-compiler",
        stdlib=lambda name: f"{name}-stdlib",
    )  # fmt: skip
    return yaml.safe_load(re.sub(r"^.*# \[not linux\]$", "", text, flags=re.M))


def test_the_conda_recipe_agrees_with_the_package(recipe: dict[str, Any]) -> None:
    assert recipe["package"] == {"name": "rueda", "version": rueda.__version__}
    source = ROOT / "deploy" / "conda" / recipe["source"]["path"]
    assert source.resolve() == ROOT
    for file in [*recipe["test"]["source_files"], recipe["about"]["license_file"]]:
        assert (ROOT / file).is_file(), file
    assert re.search(r"option\(RUEDA_STATIC_PROGRAMS ", (ROOT / "CMakeLists.txt").read_text())
    assert "cmake.define.RUEDA_STATIC_PROGRAMS=OFF" in recipe["build"]["script"]


def test_the_conda_recipe_asks_for_what_the_wheel_asks_for(recipe: dict[str, Any]) -> None:
    from importlib import metadata

    found = metadata.distribution("rueda")
    wanted = [f"python {found.metadata['Requires-Python']}"]
    extras = set()
    for text in found.requires or ():
        one = Requirement(text)
        row = f"{one.name} {one.specifier}".replace("torch ", "pytorch ")
        (extras.add if one.marker else wanted.append)(row)
    assert sorted(recipe["requirements"]["run"]) == sorted(wanted)
    # Keras 3 is what JAX needs, and is no limit for others.
    assert set(recipe["requirements"]["run_constrained"]) <= extras
