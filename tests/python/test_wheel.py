# SPDX-License-Identifier: Apache-2.0
"""The installed wheel: what it says of itself, what it carries, what it leaves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path
from typing import Callable

import pytest
import rueda
from packaging.requirements import Requirement
from ranks import environment

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 120
PROGRAMS = ("rueda", "ruedarun", "horovodrun")


@pytest.fixture(scope="module")
def installed() -> metadata.Distribution:
    return metadata.distribution("rueda")


@pytest.fixture
def wheel() -> Path:
    """The one that tools/wheel built last."""
    found = sorted((ROOT / "dist").glob("rueda-*.whl"), key=lambda one: one.stat().st_mtime)
    if not found:
        pytest.skip("missing tool: dist/rueda-*.whl")
    return found[-1]


# ---- What it says of itself --------------------------------------------------


def test_each_extra_admits_the_version_that_the_tests_use(installed) -> None:
    tested = {}
    for file in (ROOT / "tools" / "requirements").glob("*.txt"):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                name, _, version = line.partition("==")
                tested[name.replace("tensorflow-cpu", "tensorflow")] = version
    found: dict[str, list[str]] = {}
    for text in installed.requires or ():
        one = Requirement(text)
        if one.marker is not None:
            extra = re.search(r'extra == "(\w+)"', str(one.marker)).group(1)
            assert one.specifier.contains(tested[one.name]), text
            found.setdefault(extra, []).append(one.name)
    assert found == {"torch": ["torch"], "tensorflow": ["tensorflow"], "keras": ["keras"],
                     "jax": ["jax", "keras"]}  # fmt: skip
    assert sorted(installed.metadata.get_all("Provides-Extra")) == sorted(found)


def test_the_classifiers_begin_with_the_oldest_python_that_may_install_it(installed) -> None:
    classified = re.findall(r":: Python :: 3\.(\d+)$", "\n".join(
        installed.metadata.get_all("Classifier")), re.M)  # fmt: skip
    first = int(re.fullmatch(r">=3\.(\d+)", installed.metadata["Requires-Python"]).group(1))
    assert [int(one) for one in classified] == list(range(first, first + len(classified)))
    assert sys.version_info.minor in range(first, first + len(classified))


# ---- What it carries ---------------------------------------------------------


@pytest.fixture(scope="module")
def bill(installed) -> dict:
    """The bill of materials, where PEP 770 puts it."""
    (file,) = (one for one in installed.files if one.name == "rueda.cdx.json")
    assert file.parts[-2] == "sboms" and file.parts[-3].endswith(".dist-info")
    return json.loads(file.read_text())


def test_the_bill_has_each_library_of_the_wheel(bill: dict, installed) -> None:
    shared = {re.match(r"\w+?(?=[-.])", one.name).group()
              for one in installed.files if "rueda.libs" in one.parts}  # fmt: skip
    listed = {one["name"] for one in bill["components"]}
    assert shared == {"libsodium"}
    assert shared <= listed
    assert bill["dependencies"] == [{"ref": "rueda", "dependsOn": sorted(listed)}]
    assert bill["metadata"]["component"]["version"] == rueda.__version__


# A text of its code that each of them brings along, and its name for pkg-config.
LINKED = {
    "libsodium": (b"libsodium/sodium/core.c", "libsodium"),
    "libuv": (b"UV_THREADPOOL_SIZE", "libuv"),
    "libyaml": (b"%YAML directive", "yaml-0.1"),
}


def test_the_bill_has_what_each_program_is_linked_with(bill: dict, need_tool) -> None:
    parts = {part["name"]: part for part in bill["components"]}
    assert sorted(parts) == sorted(LINKED)
    for name, (mark, package) in LINKED.items():
        (programs,) = (one["value"].split() for one in parts[name]["properties"]
                       if one["name"] == "rueda:static")  # fmt: skip
        carries = [one for one in PROGRAMS if mark in Path(need_tool(one)).read_bytes()]
        assert programs == carries, name
        done = subprocess.run([need_tool("pkg-config"), "--modversion", package], check=True,
                              capture_output=True, text=True, timeout=LIMIT_S)  # fmt: skip
        assert parts[name]["version"] == done.stdout.strip()
        assert parts[name]["purl"] == f"pkg:generic/{name}@{done.stdout.strip()}"


def test_the_notices_name_the_holders_that_debian_names() -> None:
    """Of those files that are compiled into the libraries on Linux."""
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    sections = dict(zip(*[iter(re.split(r"^(lib\w+)$", notice, flags=re.M)[1:])] * 2))
    sections = {name: " ".join(text.split()) for name, text in sections.items()}
    elsewhere = re.compile(r"^(debian|docs|test|tools|m4|packaging|\.github|src/win)/|^[\w.-]+$"
                           r"|stdint-msvc|pthread-fixes|sunos|aix|os390")  # fmt: skip
    for library, package in (("libsodium", "libsodium-dev"), ("libuv", "libuv1-dev"),
                             ("libyaml", "libyaml-dev")):  # fmt: skip
        page = Path("/usr/share/doc", package, "copyright")
        if not page.exists():
            pytest.skip(f"missing tool: {page}")
        for part in page.read_text(encoding="utf-8").split("\n\n"):
            fields = dict(re.findall(r"^(\w+): *(.*(?:\n[ \t].*)*)", part, re.M))
            if "Files" not in fields or "public-domain" in fields["License"]:
                continue
            files = fields["Files"].split()
            if all(elsewhere.search(one) for one in files):
                continue
            for line in fields["Copyright"].splitlines():
                holder = re.sub(r"^[\d\s,-]+|\s*<.*|[.\s]+$", "", line)
                holder = re.sub(r"^(the )?libuv (project )?contributors", "contributors", holder)
                assert holder in sections[library], f"{library}: {line}"


def test_projects_of_cmake_and_pkg_config_find_the_library(
    need_tool: Callable[[str], str], tmp_path: Path
) -> None:
    cmake = need_tool("cmake")
    example = ROOT / "examples" / "c" / "hello_allreduce.c"
    for words in (
        ["-S", str(ROOT / "tests" / "install"), "-B", str(tmp_path), f"-DEXAMPLE={example}",
         f"-DCMAKE_PREFIX_PATH={rueda.get_prefix()}"],
        ["--build", str(tmp_path)],
    ):  # fmt: skip
        done = subprocess.run([cmake, *words], capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0, done.stdout + done.stderr
    for program in ("by_cmake", "by_pkg_config"):
        done = subprocess.run([str(tmp_path / program)], capture_output=True, text=True,
                              timeout=LIMIT_S, env=environment())  # fmt: skip
        assert done.stdout == "rank 0 of 1: the sum is 1\n", done.stderr


def test_the_first_minute_of_a_user_goes_well(need_tool: Callable[[str], str]) -> None:
    """What tools/smoke runs on other Pythons."""
    folder = str(Path(need_tool("ruedarun")).parent)
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "install" / "smoke.py")], capture_output=True,
        text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
        env=environment(PATH=os.pathsep.join([folder, os.environ["PATH"]])),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


# ---- What it leaves ----------------------------------------------------------


def test_uninstalling_leaves_nothing(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "venv"
    venv.create(place, symlinks=True)
    before = sorted(place.rglob("*"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(place)]
    for words in (["install", "--no-deps", "--no-index", str(wheel)], ["uninstall", "-y", "rueda"]):
        if words[0] == "uninstall":
            # Using it makes no file of its own, either.
            for script in ("import rueda, horovod.runner.common.util.hosts",
                           "import rueda.runner.job"):  # fmt: skip
                subprocess.run([str(place / "bin" / "python"), "-c", script], check=True,
                               timeout=LIMIT_S)  # fmt: skip
            assert {one.name for one in set(place.rglob("*")) - set(before)} >= {*PROGRAMS}
        done = subprocess.run([*pip, *words], capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0, done.stdout + done.stderr
    left = {one.relative_to(place).as_posix() for one in set(place.rglob("*")) - set(before)}
    # pip keeps the empty folders above those that it empties, outside site-packages.
    assert left <= {"share", "share/man"}
    assert set(before) <= set(place.rglob("*"))
