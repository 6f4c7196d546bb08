# SPDX-License-Identifier: Apache-2.0
"""Training that goes on when ranks come, go and die, without any framework.

    state = rueda.elastic.ObjectState(weights=weights, step=0)

    @rueda.elastic.run
    def train(state): ...

The modules of the frameworks have states of their own: ``rueda.torch.elastic.TorchState``,
``rueda.tensorflow.elastic.TensorFlowKerasState``, ``rueda.keras.elastic.KerasState``.
"""

from __future__ import annotations

from typing import Any, Callable

from .common import life
from .common.elastic import RUN_DOC, ObjectState, State, decorate, step
from .common.sampler import ElasticSampler

__all__ = ["ElasticSampler", "ObjectState", "State", "run", "step"]


def run(func: Callable[..., Any] | None = None, *, repair: bool = False) -> Callable[..., Any]:
    return decorate(func, _reset, repair)


run.__doc__ = RUN_DOC


def _reset() -> None:
    life.shutdown()
    life.init()
