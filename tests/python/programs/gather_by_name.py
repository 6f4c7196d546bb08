# SPDX-License-Identifier: Apache-2.0
"""Gathers under names that are easy to recognise on the way; each rank ends with words."""

import sys

from rueda import _core as core
from rueda.common.basics import basics as hvd
from rueda.common.exceptions import HorovodInternalError
from rueda.common.objects import allgather_object

hvd.init()
try:
    for name in ("gathered_under_this_name", "gathered_under_that_name"):
        print(allgather_object(core.rank(), name=name), flush=True)
except HorovodInternalError as error:
    print("refused:", error, flush=True)
    sys.exit(1)
hvd.shutdown()
