# SPDX-License-Identifier: Apache-2.0
"""Training that goes on when ranks come and go.

state = hvd.elastic.KerasState(model, batch=0, epoch=0)

@hvd.elastic.run
def train(state):
    model.fit(..., callbacks=[hvd.elastic.CommitStateCallback(state), ...])

train(state)
"""

from __future__ import annotations

import functools
from typing import Any, Callable

from rueda import _core
from rueda.common.elastic import RUN_DOC, ObjectState, State, decorate, step
from rueda.common.exceptions import HorovodInternalError
from rueda.common.objects import broadcast_object
from rueda.common.sampler import ElasticSampler

from . import backend
from .basics import init, rank, shutdown
from .callbacks import (
    CommitStateCallback,
    StepCallback,
    UpdateBatchStateCallback,
    UpdateEpochStateCallback,
    _variables_of,
    wait_for_step,
)
from .functions import broadcast_variables, shared_variables

__all__ = [
    "CommitStateCallback",
    "ElasticSampler",
    "KerasState",
    "ObjectState",
    "State",
    "StepCallback",
    "UpdateBatchStateCallback",
    "UpdateEpochStateCallback",
    "run",
    "step",
]


def run(func: Callable[..., Any] | None = None, *, repair: bool = False) -> Callable[..., Any]:
    return decorate(func, _reset, repair, _translate)


run.__doc__ = RUN_DOC


def _translate(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def translated(*args: Any, **kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except Exception as error:
            # JAX and TensorFlow give errors from inside a step a type of their own.
            if _is_of_ours(error):
                raise HorovodInternalError(str(error)) from error
            raise

    return translated


def _is_of_ours(error: Exception) -> bool:
    kind = type(error)
    is_foreign = kind.__module__.split(".")[0] in ("jax", "jaxlib", "tensorflow")
    return is_foreign and ("HorovodInternalError" in str(error) or "Rueda" in str(error))


def _reset() -> None:
    shutdown()
    init()


class KerasState(ObjectState):
    """A model with its optimizer, and plain values, that survive together.

        state = KerasState(model, batch=0, epoch=0)

    The model has to have its weights. The optimizer is the model's unless it is given.
    """

    def __init__(self, model: Any, optimizer: Any = None, **kwargs: Any) -> None:
        if not model.built:
            raise ValueError(
                "the model has no weights yet; call model.build(shape of the input) first"
            )
        self.model = model
        self.optimizer = optimizer or model.optimizer
        if not _is_built(self.optimizer):
            self.optimizer.build(model.trainable_variables)
        self._save()
        super().__init__(bcast_object=broadcast_object, get_rank=rank, **kwargs)

    def end_step(self) -> None:
        if _core.repairs():
            wait_for_step(self.model)
        super().end_step()

    def save(self) -> None:
        self._save()
        super().save()

    def restore(self) -> None:
        for variable, value in self._saved_values:
            backend.assign(variable, value)
        super().restore()

    def durable(self) -> dict[str, Any]:
        return {**super().durable(), "variables": [value for _, value in self._saved_values]}

    def load_durable(self, parts: dict[str, Any]) -> None:
        super().load_durable(parts)
        variables, values = self._variables(), parts["variables"]
        if [tuple(one.shape) for one in variables] != [tuple(one.shape) for one in values]:
            raise ValueError("the copy is of a model or an optimizer with other variables")
        for variable, value in zip(variables, values):
            backend.assign(variable, value)

    def sync(self) -> None:
        variables = [*shared_variables(self.model), *_variables_of(self.optimizer)]
        broadcast_variables(variables, 0, label="state")
        self._save()
        super().sync()

    def _variables(self) -> list[Any]:
        return [*self.model.variables, *_variables_of(self.optimizer)]

    def _save(self) -> None:
        # Copies: an array may be the variable's own memory.
        self._saved_values = [
            (variable, backend.to_numpy(variable).copy()) for variable in self._variables()
        ]


def _is_built(optimizer: Any) -> bool:
    """Old optimizers of Keras 2 make their variables by themselves."""
    return getattr(optimizer, "built", True) or not hasattr(optimizer, "build")
