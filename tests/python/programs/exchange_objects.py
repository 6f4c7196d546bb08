# SPDX-License-Identifier: Apache-2.0
"""The ranks send each other objects, and say what became of them."""

import os

from rueda import _core as core
from rueda.common import objects
from rueda.common.basics import basics as hvd
from rueda.common.exceptions import HorovodInternalError
from rueda.common.objects import allgather_object, broadcast_object

if os.environ.get("RUEDA_TEST_CHANGES_BEHIND_SEAL"):
    seal = objects._Call.seal

    def seal_and_change(call, data):
        head = seal(call, data)
        if core.rank() == 0:
            data[:] = data.replace(b"INNOCENT", b"MEDDLING")
        return head

    objects._Call.seal = seal_and_change

hvd.init()
for call in (lambda: broadcast_object("INNOCENT!" * 3, 0),
             lambda: allgather_object("INNOCENT?" * (core.rank() + 2))):
    try:
        print(call(), flush=True)
    except HorovodInternalError as error:
        print("refused:", error, flush=True)
hvd.shutdown()
