# SPDX-License-Identifier: Apache-2.0
"""The ranks send each other objects, and say what became of them."""

from rueda import _core as core
from rueda.common.basics import basics as hvd
from rueda.common.exceptions import HorovodInternalError
from rueda.common.objects import allgather_object, broadcast_object

hvd.init()
for call in (lambda: broadcast_object("INNOCENT!" * 3, 0),
             lambda: allgather_object("INNOCENT?" * (core.rank() + 2))):
    try:
        print(call(), flush=True)
    except HorovodInternalError as error:
        print("refused:", error, flush=True)
hvd.shutdown()
