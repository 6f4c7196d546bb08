# SPDX-License-Identifier: Apache-2.0
"""A rank of two adds a number and says the sum."""

from rueda import _core as core
from rueda.common.basics import basics as hvd
from rueda.common.objects import allgather_object

hvd.init()
print(sum(allgather_object(core.rank() + 1)), flush=True)
hvd.shutdown()
