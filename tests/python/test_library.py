# SPDX-License-Identifier: Apache-2.0
"""The installed package: its library, its header and its program."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

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
