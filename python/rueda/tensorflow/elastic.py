# SPDX-License-Identifier: Apache-2.0
"""Training with TensorFlow that goes on when ranks come and go.

state = hvd.elastic.TensorFlowKerasState(model, optimizer, epoch=0)

@hvd.elastic.run
def train(state): ...
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Callable

import tensorflow as tf

from rueda.common.elastic import RUN_DOC, ObjectState, State, decorate, step
from rueda.common.exceptions import HorovodInternalError
from rueda.common.sampler import ElasticSampler

from . import mpi_ops
from .functions import broadcast_object, broadcast_variables
from .library import is_eager
from .mpi_ops import assign

__all__ = [
    "ElasticSampler",
    "ObjectState",
    "State",
    "TensorFlowKerasState",
    "TensorFlowState",
    "run",
    "step",
]

#: What TensorFlow raises for an op of ours that failed because the job did.
_FAILURES = (tf.errors.UnknownError, tf.errors.AbortedError)


def run(func: Callable[..., Any] | None = None, *, repair: bool = False) -> Callable[..., Any]:
    return decorate(func, _reset, repair, _translate)


run.__doc__ = RUN_DOC


def _translate(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def translating(*args: Any, **kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except _FAILURES as error:
            if "Horovod" not in str(error):
                raise
            raise HorovodInternalError(str(error)) from error

    return translating


def _reset() -> None:
    mpi_ops.shutdown()
    mpi_ops.init()


class TensorFlowState(ObjectState):
    """Variables and plain values that survive together.

        state = TensorFlowState(variables=model.variables, epoch=0)

    Without ``variables`` those of the default graph are meant. ``session`` runs the
    graph that they are in, where ops do not run at once.
    """

    def __init__(self, variables: Any = None, session: Any = None, **kwargs: Any) -> None:
        self.variables = list(variables or tf.compat.v1.global_variables())
        self.session = session or tf.compat.v1.get_default_session()
        self._ops: dict[str, Any] = {}
        self._save_variables()
        super().__init__(bcast_object=broadcast_object, get_rank=mpi_ops.rank, **kwargs)

    def _in_graph(self, what: str, make: Callable[[], Any]) -> Any:
        """An op of the session's graph, made when it is first asked for."""
        if what not in self._ops:
            with self.session.graph.as_default():
                self._ops[what] = make()
        return self._ops[what]

    def _save_variables(self) -> None:
        if is_eager():
            self._values = [variable.numpy() for variable in self.variables]
        else:
            self._values = self.session.run(self.variables)

    def _load_variables(self) -> None:
        if is_eager():
            for variable, value in zip(self.variables, self._values):
                variable.assign(value)
            return
        rooms = self._in_graph(
            "rooms", lambda: [tf.compat.v1.placeholder(v.dtype, v.shape) for v in self.variables]
        )
        load = self._in_graph(
            "load", lambda: [assign(v, room) for v, room in zip(self.variables, rooms)]
        )
        self.session.run(load, dict(zip(rooms, self._values)))

    def save(self) -> None:
        self._save_variables()
        super().save()

    def restore(self) -> None:
        self._load_variables()
        super().restore()

    def durable(self) -> dict[str, Any]:
        return {**super().durable(), "variables": list(self._values)}

    def load_durable(self, parts: dict[str, Any]) -> None:
        super().load_durable(parts)
        self._values = _fitting(self.variables, parts["variables"])
        self._load_variables()

    def sync(self) -> None:
        if is_eager():
            broadcast_variables(self.variables, root_rank=0)
        else:
            self.session.run(
                self._in_graph("sync", lambda: broadcast_variables(self.variables, root_rank=0))
            )
        self._save_variables()
        super().sync()


class TensorFlowKerasState(ObjectState):
    """A model, its optimizer and plain values that survive together.

        state = TensorFlowKerasState(model, optimizer, epoch=0, batch=0)

    The model has its variables, by ``model.build(shape)`` or a first call. Without
    ``optimizer`` it is the one that the model was compiled with.
    """

    def __init__(
        self, model: Any, optimizer: Any = None, backend: Any = None, **kwargs: Any
    ) -> None:
        if not getattr(model, "built", True):
            raise ValueError("the model has no variables yet; call model.build(input_shape) before")
        self.model = model
        self.optimizer = optimizer or model.optimizer
        self.backend = backend
        self._save_model()
        super().__init__(bcast_object=broadcast_object, get_rank=mpi_ops.rank, **kwargs)

    def _variables(self) -> list[Any]:
        """Those of the model and of the optimizer, which is a method in Keras 2."""
        mine = getattr(self.optimizer, "variables", [])
        return [*self.model.variables, *(mine() if callable(mine) else mine)]

    def _save_model(self) -> None:
        self._saved = [(variable, variable.numpy()) for variable in self._variables()]

    def save(self) -> None:
        self._save_model()
        super().save()

    def restore(self) -> None:
        for variable, value in self._saved:
            variable.assign(value)
        super().restore()

    def durable(self) -> dict[str, Any]:
        return {**super().durable(), "variables": [value for _, value in self._saved]}

    def load_durable(self, parts: dict[str, Any]) -> None:
        super().load_durable(parts)
        variables = self._variables()
        for variable, value in zip(variables, _fitting(variables, parts["variables"])):
            variable.assign(value)

    def sync(self) -> None:
        _check_same(self._variables())
        broadcast_variables(self._variables(), root_rank=0)
        self._save_model()
        super().sync()


def _fitting(variables: Sequence[Any], values: list[Any]) -> list[Any]:
    """The values, if they are those of such variables."""
    if [tuple(one.shape) for one in variables] != [tuple(one.shape) for one in values]:
        raise ValueError(
            f"the copy has {len(values)} variables, and there are {len(variables)} or they have "
            "other shapes; is it of the same model, and are model and optimizer built?"
        )
    return values


def _check_same(variables: Sequence[Any]) -> None:
    """Optimizers make some of their variables at the first step, which others may have done."""
    shapes = [tuple(variable.shape) for variable in variables]
    wanted = broadcast_object(shapes, name="elastic.shapes")
    if shapes != wanted:
        raise ValueError(
            f"the model and the optimizer have {len(shapes)} variables on rank "
            f"{mpi_ops.rank()}, and {len(wanted)} on rank 0; build both before, for example by "
            "optimizer.build(model.trainable_variables)"
        )
