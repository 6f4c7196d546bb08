# SPDX-License-Identifier: Apache-2.0
"""Training that goes on when ranks come and go.

    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=0)

    @hvd.elastic.run
    def train(state): ...
"""

from __future__ import annotations

from typing import Any, Callable

from rueda.common.elastic import RUN_DOC, ObjectState, State, decorate, run_fn, step

from .. import mpi_ops
from .sampler import ElasticSampler
from .state import TorchState

__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run", "run_fn", "step"]


def run(func: Callable[..., Any] | None = None, *, repair: bool = False) -> Callable[..., Any]:
    return decorate(func, _reset, repair)


run.__doc__ = RUN_DOC


def _reset() -> None:
    mpi_ops.shutdown()
    mpi_ops.init()
