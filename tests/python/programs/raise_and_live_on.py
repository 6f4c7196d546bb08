# SPDX-License-Identifier: Apache-2.0
"""Rank 1 raises and lives on; rank 0, which fails because of that, is the first to end."""

import os
import time
import traceback

if os.environ["RUEDA_RANK"] == "1":
    try:
        raise ValueError("bad step")
    except ValueError:
        traceback.print_exc()
    time.sleep(100)
time.sleep(1)
raise RuntimeError("a peer has left")
