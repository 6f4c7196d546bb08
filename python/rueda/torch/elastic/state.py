# SPDX-License-Identifier: Apache-2.0
"""The elastic state of a training in PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import torch

from rueda.common.elastic import ObjectState

from .. import mpi_ops
from ..functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from .sampler import ElasticSampler

__all__ = [
    "ModelStateHandler",
    "OptimizerStateHandler",
    "SamplerStateHandler",
    "StateHandler",
    "TorchState",
    "get_handler_registry",
    "set_handler_registry",
]


class StateHandler:
    """How a value of some type is kept, brought back and synchronised."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def durable(self) -> Any:
        """What was saved last, to be pickled."""
        raise NotImplementedError(f"{type(self).__name__} cannot be written")

    def load_durable(self, saved: Any) -> None:
        """Take on what :meth:`durable` has returned."""
        raise NotImplementedError(f"{type(self).__name__} cannot be read")

    def set_value(self, value: Any) -> None:
        """Handle this one from now on."""
        self.value = value
        self.save()


class _DictHandler(StateHandler):
    """A value with ``state_dict`` and ``load_state_dict``."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        # Some values keep what they load, and change it.
        self.value.load_state_dict(copy.deepcopy(self._saved))

    def durable(self) -> Any:
        return self._saved

    def load_durable(self, saved: Any) -> None:
        self._saved = saved
        self.restore()


class ModelStateHandler(_DictHandler):
    def restore(self) -> None:
        # Copied into the parameters, so the copy is safe.
        self.value.load_state_dict(self._saved)

    def sync(self) -> None:
        broadcast_parameters(self.value.state_dict(), root_rank=0)
        self.save()


class OptimizerStateHandler(_DictHandler):
    def sync(self) -> None:
        broadcast_optimizer_state(self.value, root_rank=0)
        self.save()


class SamplerStateHandler(_DictHandler):
    def sync(self) -> None:
        self.value.load_state_dict(broadcast_object(self.value.state_dict()))
        self.save()


_registry: list[tuple[type, type[StateHandler]]] = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry() -> list[tuple[type, type[StateHandler]]]:
    """The handler of each type; the first that fits is taken."""
    return _registry


def set_handler_registry(registry: list[tuple[type, type[StateHandler]]]) -> None:
    """Use these handlers for states that are made from now on."""
    global _registry
    _registry = registry


def _handler_of(value: Any) -> StateHandler | None:
    for kind, handler in _registry:
        if isinstance(value, kind):
            return handler(value)
    return None


class TorchState(ObjectState):
    """Models, optimizers, samplers and plain values that survive together.

        state = TorchState(model=model, optimizer=optimizer, epoch=0, batch=0)

    Modules, optimizers and elastic samplers are kept by a deep copy of what
    they hold. Everything else is a plain value, as in
    :class:`rueda.elastic.ObjectState`.
    """

    def __init__(self, model: Any = None, optimizer: Any = None, **kwargs: Any) -> None:
        kwargs.update(model=model, optimizer=optimizer)
        # Not through our own __setattr__, which looks into it.
        self.__dict__["_handlers"] = handlers = {}
        plain = {}
        for name, value in kwargs.items():
            handler = _handler_of(value)
            if handler is None:
                plain[name] = value
            else:
                handlers[name] = handler
        super().__init__(bcast_object=broadcast_object, get_rank=mpi_ops.rank, **plain)

    def save(self) -> None:
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self) -> None:
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self) -> None:
        for handler in self._handlers.values():
            handler.sync()
        super().sync()

    def durable(self) -> dict[str, Any]:
        handled = {name: handler.durable() for name, handler in self._handlers.items()}
        return {**super().durable(), "handled": handled}

    def load_durable(self, parts: dict[str, Any]) -> None:
        super().load_durable(parts)
        for name, saved in parts["handled"].items():
            self._handlers[name].load_durable(saved)

    def reset(self) -> None:
        for handler in self._handlers.values():
            if isinstance(handler.value, ElasticSampler):
                handler.value.reset()

    def __getattr__(self, name: str) -> Any:
        # Only called for what is no ordinary attribute.
        handlers = self.__dict__.get("_handlers", {})
        if name in handlers:
            return handlers[name].value
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        handler = self._handlers.get(name)
        if handler is None:
            super().__setattr__(name, value)
        else:
            handler.set_value(value)
