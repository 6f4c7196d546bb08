# SPDX-License-Identifier: Apache-2.0
"""rueda._core without any framework, in every Python that is here."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rueda
from ranks import environment, program

LIMIT_S = 60

def pythons() -> list[str]:
    """One of each version from 3.9 on, this one first."""
    patterns = [f"{os.environ.get('PYENV_ROOT', Path.home() / '.pyenv')}/versions/3.{minor}.*"
                for minor in range(9, 30)]  # fmt: skip
    found = [sys.executable]
    for number, pattern in enumerate(patterns, 9):
        paths = [shutil.which(f"python3.{number}")]
        paths += [f"{folder}/bin/python" for folder in sorted(glob.glob(pattern))]
        found += [path for path in paths if path is not None and runs(path, number)][-1:]
    return found


def runs(path: str, minor: int) -> bool:
    """A shim of pyenv's is there for versions that it will not start."""
    code = f"import sys; sys.exit(sys.version_info[:2] != (3, {minor}))"
    try:
        return subprocess.run([path, "-c", code], capture_output=True, timeout=30).returncode == 0
    except OSError:
        return False


@pytest.mark.parametrize("python", pythons())
def test_one_file_serves_every_python(python: str) -> None:
    folder = str(Path(rueda.__file__).parents[1])
    done = subprocess.run(
        [python, program("use_core.py"), folder], capture_output=True, text=True, timeout=LIMIT_S,
        env=environment(),
    )  # fmt: skip
    assert done.stdout == "good\n", done.stderr
