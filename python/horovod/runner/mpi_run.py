# SPDX-License-Identifier: Apache-2.0
"""Starting a command by mpirun."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any


def _version(env: Mapping[str, str] | None) -> str:
    try:
        done = subprocess.run(
            ["mpirun", "--version"], capture_output=True, text=True, env=env, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout + done.stderr


def mpi_available(env: Mapping[str, str] | None = None) -> bool:
    """Is there an mpirun on the PATH?"""
    return shutil.which("mpirun", path=None if env is None else env.get("PATH")) is not None


def is_open_mpi(env: Mapping[str, str] | None = None) -> bool:
    return any(name in _version(env) for name in ("Open MPI", "OpenRTE"))


def is_spectrum_mpi(env: Mapping[str, str] | None = None) -> bool:
    return "IBM Spectrum MPI" in _version(env)


def is_mpich(env: Mapping[str, str] | None = None) -> bool:
    return any(name in _version(env) for name in ("MPICH", "HYDRA"))


def is_intel_mpi(env: Mapping[str, str] | None = None) -> bool:
    return "Intel(R) MPI" in _version(env)


def mpi_run(
    settings: Any,
    nics: Iterable[str],
    env: Mapping[str, str],
    command: Iterable[str],
    stdout: Any = None,
    stderr: Any = None,
) -> None:
    """Run a command by ``horovodrun --mpi``; RuntimeError if it fails. It prints to our streams."""
    from .launch import _run_by_settings

    _run_by_settings(settings, nics, env, " ".join(command), use_mpi=True)
