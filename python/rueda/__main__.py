# SPDX-License-Identifier: Apache-2.0
"""``python -m rueda`` is the program ``rueda`` that was installed with this package."""

from __future__ import annotations

import os
import sys

from .runner.job import find_program

if __name__ == "__main__":
    try:
        program = find_program("rueda")
    except FileNotFoundError as error:
        sys.exit(f"rueda: {error}")
    os.execv(program, ["rueda", *sys.argv[1:]])
