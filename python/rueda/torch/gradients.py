# SPDX-License-Identifier: Apache-2.0
"""What a reducer knows of its parameters; see reducer.py."""

from __future__ import annotations

from typing import Any

import torch

from rueda import _core
from rueda.common.operations import REDUCTIONS
from rueda.common.process_sets import ProcessSet

from .compression import Compression

__all__ = ["Group", "Settings", "Gradient"]


class Settings:
    """What is the same for all gradients of an optimizer."""

    def __init__(
        self,
        compression: Any,
        passes: int,
        op: int,
        predivide: float,
        sparse_as_dense: bool,
        only_sparse: bool,
        process_set: ProcessSet,
    ) -> None:
        self.compression = compression
        self.is_plain = compression is Compression.none
        self.passes = passes
        self.op = op
        self.reduction = REDUCTIONS.get(op)  # None: not by the short way
        # The average divides by the number of ranks besides.
        self.prescale = 1.0 / predivide
        self.postscale = predivide
        self.sparse_as_dense = sparse_as_dense
        self.only_sparse = only_sparse  # the optimizer takes no dense gradients
        self.process_set = process_set

    def how(self) -> tuple[Any, ...]:
        """The last arguments of allreduce_async_()."""
        return self.op, self.prescale, self.postscale, self.process_set


class Group:
    """Slots that are reduced together, when the last of them is ready."""

    __slots__ = ("gradients", "waiting_for")

    def __init__(self, gradients: list[Gradient]) -> None:
        self.gradients = gradients
        self.waiting_for = len(gradients)


class Gradient(_core.Gradient):
    """A parameter that is reduced, and where its gradient of this step is.

    What the base has, the short way in src/bind/torch/gradient.c looks at.
    """

    __slots__ = (
        "name",
        "key",
        "group",
        "hook",
        "context",
        "was_sparse",
        "is_stand_in",
    )

    def __init__(self, param: torch.Tensor, name: str) -> None:
        self.param = param
        self.sent: torch.Tensor | None = None  # what is being reduced
        self.passes_left = 1  # 0: handed over
        self.is_fast = False  # may it take the short way?
        self.name = name
        self.key = f"allreduce.{name}"  # what allreduce_async_() calls it
        self.group: Group | None = None
        self.hook: Any = None
        self.context: Any = None  # of the compressor
        self.was_sparse = False  # the last time
        self.is_stand_in = False  # of a frozen parameter without a gradient
