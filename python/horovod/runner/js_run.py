# SPDX-License-Identifier: Apache-2.0
"""Starting a command by IBM's jsrun."""

from __future__ import annotations

import shutil

from horovod.runner._gone import names


def is_jsrun_installed() -> bool:
    return shutil.which("jsrun") is not None


__getattr__ = names(
    __name__,
    "horovodrun --jsrun starts the ranks, and divides the cores",
    ["js_run", "generate_jsrun_rankfile"],
)
