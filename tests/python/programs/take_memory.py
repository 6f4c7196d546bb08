# SPDX-License-Identifier: Apache-2.0
"""Rank 1 takes 99 MiB; all sleep."""

import os
import time

memory = bytearray(99 << 20) if os.environ["RUEDA_RANK"] == "1" else None
time.sleep(100)
