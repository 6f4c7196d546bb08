# SPDX-License-Identifier: Apache-2.0
"""Rank 0 waits in init() for rank 1, which does not come; argv: "again" in a second life."""

import os
import sys
import time

import horovod.torch as hvd

if sys.argv[1] == "again":
    hvd.init()
    hvd.shutdown()
print("waiting", flush=True)
if os.environ["RUEDA_RANK"] == "1":
    time.sleep(60)
hvd.init()
