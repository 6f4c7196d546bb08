# SPDX-License-Identifier: Apache-2.0
"""What is said where a framework is not installed."""

from __future__ import annotations

import importlib.util


def need(module: str, framework: str, package: str) -> None:
    """Raise ModuleNotFoundError, with the remedy, where this module of Python is not here.

    One that is here and cannot be imported tells its own story.
    """
    try:
        is_here = importlib.util.find_spec(module) is not None
    except ValueError:  # it is loaded, and was made by hand
        is_here = True
    if not is_here:
        raise ModuleNotFoundError(
            f"this needs {framework}, which is not installed: pip install {package}", name=module
        )
