# SPDX-License-Identifier: Apache-2.0
"""The installed package: its library, its header and its program."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest
import rueda


def test_library_loads_and_tells_the_version_of_the_package() -> None:
    library = ctypes.CDLL(rueda.get_library())
    library.rueda_version.restype = ctypes.c_char_p
    assert library.rueda_version().decode() == rueda.__version__


def test_header_is_where_get_include_says() -> None:
    header = Path(rueda.get_include(), "rueda", "rueda.h")
    assert "rueda_version(void)" in header.read_text()


def test_program_is_installed_and_tells_the_same_version(need_tool) -> None:
    done = subprocess.run(
        [need_tool("rueda"), "--version"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert rueda.__version__ in done.stdout


def test_what_is_loaded_on_first_use_is_completed_too() -> None:
    assert set(rueda.__all__) <= set(dir(rueda))


def test_the_package_is_the_program_too(need_tool) -> None:
    for words, code in ((["--version"], 0), (["bench", "nothing"], 2)):
        one, other = (
            subprocess.run([*program, *words], capture_output=True, text=True, timeout=30)
            for program in ([need_tool("rueda")], [sys.executable, "-m", "rueda"])
        )
        assert (other.returncode, other.stdout, other.stderr) == (code, one.stdout, one.stderr)


@pytest.mark.parametrize(("module", "framework"), [("torch", "PyTorch"),
                                                   ("tensorflow", "TensorFlow")])  # fmt: skip
def test_a_missing_framework_is_named_with_the_remedy(module: str, framework: str) -> None:
    script = (
        f"import sys; sys.modules['{module}'] = None\n"
        f"try:\n    import horovod.{module}\n"
        "except ModuleNotFoundError as error:\n    print(error.name, error, sep=': ')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          timeout=30)  # fmt: skip
    assert done.stdout == (
        f"{module}: this needs {framework}, which is not installed: pip install {module}\n"
    ), done.stderr
