# SPDX-License-Identifier: Apache-2.0
"""Training that goes on when ranks come and go.

    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=0)

    @hvd.elastic.run
    def train(state): ...
"""

from __future__ import annotations

from typing import Any, Callable

from rueda.common.elastic import run_fn, step

from .. import mpi_ops
from .sampler import ElasticSampler
from .state import TorchState

__all__ = ["ElasticSampler", "TorchState", "run", "step"]


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a training function whose first argument is a state.

    A lost rank brings it back to the last ``state.commit()``; hosts that come
    or go let it go on from where it is. Each time it is called again, with the
    ranks that there are then.
    """
    return run_fn(func, _reset)


def _reset() -> None:
    mpi_ops.shutdown()
    mpi_ops.init()
