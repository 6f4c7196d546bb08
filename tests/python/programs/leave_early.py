# SPDX-License-Identifier: Apache-2.0
"""Rank 0 has enough of it before rank 1 needs it."""

import os
import time

from adding import add, ctx, library

if os.environ["RUEDA_RANK"] == "1":
    time.sleep(1)
    assert add() == -5
    print(library.rueda_error(ctx).decode())
library.rueda_shutdown(ctx)
