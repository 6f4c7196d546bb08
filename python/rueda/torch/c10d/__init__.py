# SPDX-License-Identifier: Apache-2.0
"""Rueda as a back end of ``torch.distributed``.

::

    import rueda.torch.c10d
    torch.distributed.init_process_group("rueda")

DDP, FSDP and whatever else stands on ``torch.distributed`` then runs on Rueda. Scripts
need no other change. ``docs/from-ddp.md`` has the details.
"""

from __future__ import annotations

import torch.distributed as dist

from .group import RuedaProcessGroup, make_group

__all__ = ["RuedaProcessGroup"]

#: What init_process_group() knows it by.
NAME = "rueda"

if NAME not in dist.Backend.backend_list:
    dist.Backend.register_backend(NAME, make_group, extended_api=True, devices=["cpu", "cuda"])
