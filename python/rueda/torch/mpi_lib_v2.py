# SPDX-License-Identifier: Apache-2.0
"""Horovod's compiled module; scripts import it to see whether Horovod was built with PyTorch.

Handles are polled and waited for by the functions that scripts have been seen to
call. The others, one for each type of tensor, are those of ``rueda.torch``.
"""

from __future__ import annotations

from typing import Any

from rueda.common.handles import poll, synchronize

__all__ = ["horovod_torch_poll", "horovod_torch_wait_and_clear"]


def horovod_torch_poll(handle: int) -> bool:
    """Has the operation ended?"""
    return poll(handle)


def horovod_torch_wait_and_clear(handle: int) -> None:
    """Wait for an operation; its result is dropped, as memory that was given is filled in."""
    synchronize(handle)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"{name} is compiled into Horovod; use the function of horovod.torch, such as"
        " allreduce_async_()"
    )
