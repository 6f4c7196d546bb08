# SPDX-License-Identifier: Apache-2.0
"""A command and what it printed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping


def execute(command: str, env: Mapping[str, str] | None = None) -> tuple[str, int] | None:
    """Run a shell command; what it printed on both streams, and its exit code."""
    try:
        done = subprocess.run(
            command, shell=True, check=False, env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except OSError:
        return None
    return done.stdout, done.returncode
