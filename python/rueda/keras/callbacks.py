# SPDX-License-Identifier: Apache-2.0
"""Callbacks for ``fit()``; put these before others that look at the metrics.

All of them check that a distributed optimizer was really used: if no gradient has come to
it in the first epoch, that epoch fails.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from typing import Any

from rueda import _core
from rueda.common import arrays
from rueda.common.basics import basics
from rueda.common.process_sets import global_process_set

from . import backend
from .flavor import IS_LEGACY, back_end, keras
from .functions import broadcast_variables, shared_variables
from .optimizer import check_synchronised, reducer_of

__all__ = [
    "BestModelCheckpoint",
    "BroadcastGlobalVariablesCallback",
    "CommitStateCallback",
    "LearningRateScheduleCallback",
    "LearningRateWarmupCallback",
    "MetricAverageCallback",
    "StepCallback",
    "UpdateBatchStateCallback",
    "UpdateEpochStateCallback",
]


class _Callback(keras.callbacks.Callback):
    """What all have in common."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        check_synchronised(self.model)


class BroadcastGlobalVariablesCallback(_Callback):
    """Give all ranks the variables of the root's model and optimizer, once.

    That is before the first step where the model has its variables by then, else after it.
    ``local_variables``, one or several, are left alone. With an optimizer of a process set
    the root is a member, and the other ranks keep what they have.
    """

    def __init__(self, root_rank: int, device: str = "", local_variables: Any = None) -> None:
        super().__init__()
        self.root_rank = root_rank
        self.broadcast_done = False
        self._local: dict[int, Any] = {}
        if local_variables is None:
            local_variables = ()
        elif not isinstance(local_variables, Iterable) or hasattr(local_variables, "assign"):
            local_variables = (local_variables,)
        for variable in local_variables:
            self.register_local_var(variable)

    def register_local_var(self, var: Any) -> None:
        """Leave this variable alone."""
        self._local[id(var)] = var

    def on_train_begin(self, logs: Any = None) -> None:
        model = self.model
        reducer = reducer_of(model.optimizer)
        if self.broadcast_done:
            return
        if not IS_LEGACY and model.built:
            if not model.optimizer.built:
                model.optimizer.build(model.trainable_variables)
            self._broadcast()
        elif reducer is not None:
            reducer.agreement.skip()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if not self.broadcast_done:
            self._broadcast()

    on_batch_end = on_train_batch_end

    def _broadcast(self) -> None:
        self.broadcast_done = True
        model = self.model
        reducer = reducer_of(model.optimizer)
        process_set = reducer.options.process_set if reducer else global_process_set
        mine = [one for one in shared_variables(model) if not self._is_local(one, reducer)]
        broadcast_variables(mine, self.root_rank, process_set, "model")
        broadcast_variables(
            _variables_of(model.optimizer), self.root_rank, process_set, "optimizer"
        )

    def _is_local(self, variable: Any, reducer: Any) -> bool:
        return id(variable) in self._local or (reducer is not None and reducer.is_local(variable))


def _variables_of(optimizer: Any) -> list[Any]:
    """Keras 2 has a method, Keras 3 a property."""
    found = optimizer.variables
    return list(found() if callable(found) else found)


class MetricAverageCallback(_Callback):
    """Average the metrics of an epoch over all ranks.

    Callbacks that come later in the list, and the history, see the averages.
    """

    def __init__(self, device: str = "") -> None:
        super().__init__()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        names = sorted(name for name, value in (logs or {}).items() if _is_number(value))
        if not names or basics.size() == 1:
            return
        # Ranks with other metrics are told so, because they wait for another name.
        label = f"keras.metrics.{','.join(names)}"
        values = [[float(logs[name]) for name in names]]
        for name, value in zip(names, arrays.allreduce(values, [label])[0]):
            logs[name] = float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) or getattr(value, "shape", None) == ()


class LearningRateScheduleCallback(_Callback):
    """Set the learning rate to ``initial_lr * multiplier(epoch)`` for a range of epochs.

    A multiplier m that is a number means ``m ** (epoch - start_epoch)``. With
    ``staircase=False`` the epoch has a fraction, and the rate changes in every batch, which
    needs ``steps_per_epoch`` where Keras does not know it.

    ``momentum_correction`` scales the momentum by the new rate over the old one in the batch
    in which the rate changes, where the optimizer has a momentum and its steps run in Python
    (PyTorch, or ``run_eagerly``): a compiled step cannot be told of another momentum.
    """

    def __init__(
        self,
        initial_lr: float,
        multiplier: float | Callable[[float], float],
        start_epoch: int = 0,
        end_epoch: int | None = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
    ) -> None:
        super().__init__()
        if initial_lr is None:
            raise ValueError("initial_lr is the learning rate that the multiplier is applied to")
        self.initial_lr = initial_lr
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = 0
        self._momentum: float | None = None  # what to go back to after the batch
        if callable(multiplier):
            self.multiplier = multiplier
        else:
            self.staircase = True
            self.multiplier = lambda epoch: multiplier ** (epoch - start_epoch)

    def on_train_begin(self, logs: Any = None) -> None:
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = (self.params or {}).get("steps")
            if not self.steps_per_epoch:
                raise ValueError(
                    "Keras does not know how many steps an epoch has; give steps_per_epoch to "
                    f"{type(self).__name__}"
                )

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.current_epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self.current_epoch < self.start_epoch:
            return
        if self.end_epoch is not None and self.current_epoch >= self.end_epoch:
            return
        if not self.staircase:
            self._adjust(self.current_epoch + batch / self.steps_per_epoch)
        elif batch == 0:
            self._adjust(self.current_epoch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._momentum is not None:
            _bare(self.model.optimizer).momentum = self._momentum
            self._momentum = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        if logs is not None:
            logs["lr"] = _rate_of(self.model.optimizer)

    def _adjust(self, epoch: float) -> None:
        # Where the step is compiled by JAX, looking at self.model brings the variables back.
        model = self.model
        before = _rate_of(model.optimizer)
        after = self.initial_lr * self.multiplier(epoch)
        if before == after:
            return
        model.optimizer.learning_rate = after
        optimizer = _bare(model.optimizer)
        momentum = getattr(optimizer, "momentum", None)
        is_variable = hasattr(momentum, "assign")  # of the old optimizers of Keras 2
        is_eager = back_end() == "torch" or getattr(model, "run_eagerly", False)
        if self.momentum_correction and before > 0 and isinstance(momentum, float) and is_eager:
            self._momentum = momentum
        elif self.momentum_correction and before > 0 and is_variable:
            self._momentum = float(backend.to_numpy(momentum))
        if self._momentum is not None:
            optimizer.momentum = self._momentum * after / before


def _bare(optimizer: Any) -> Any:
    """Return the optimizer inside one that scales losses."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def _rate_of(optimizer: Any) -> float:
    rate = optimizer.learning_rate
    if IS_LEGACY and callable(rate):
        rate = rate(optimizer.iterations)
    return float(rate if isinstance(rate, float) else backend.to_numpy(rate))


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Raise the learning rate from that of one rank to ``initial_lr``, that of all.

    It is ``initial_lr / size`` at first and reaches ``initial_lr`` after ``warmup_epochs``.
    ``verbose`` has rank 0 say so then.
    """

    def __init__(
        self,
        initial_lr: float,
        warmup_epochs: float = 5,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
        verbose: int = 0,
    ) -> None:
        def multiplier(epoch: float) -> float:
            # The rate of a batch is the one at its end.
            epoch += 1.0 / self.steps_per_epoch
            return (epoch * (basics.size() - 1) / warmup_epochs + 1) / basics.size()

        super().__init__(
            initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction, steps_per_epoch
        )
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        if self.end_epoch is not None and epoch == self.end_epoch - 1 and self.verbose > 0:
            if basics.is_master():
                rate = _rate_of(self.model.optimizer)
                print(f"\nEpoch {epoch + 1}: the learning rate is warmed up to {rate:g}.")


class BestModelCheckpoint(keras.callbacks.ModelCheckpoint):
    """A ModelCheckpoint that keeps the best model only; ``filepath`` can be set later."""

    def __init__(
        self,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
        filepath: Any = None,
    ) -> None:
        # Keras 3 looks at the end of the name.
        stand_in = "best.weights.h5" if save_weights_only else "best.keras"
        super().__init__(
            filepath=stand_in if filepath is None else filepath,
            monitor=monitor,
            verbose=verbose,
            save_best_only=True,
            save_weights_only=save_weights_only,
            mode=mode,
            save_freq=save_freq,
        )
        if filepath is None:
            self.filepath = None

    def on_train_begin(self, logs: Any = None) -> None:
        if self.filepath is None:
            raise ValueError("set the filepath of BestModelCheckpoint before fit()")
        super().on_train_begin(logs)


# ---- Elastic jobs -----------------------------------------------------------


def wait_for_step(model: Any) -> None:
    """Return when the step that was begun last is done; JAX does not wait for it."""
    counter = getattr(model.optimizer, "iterations", None)
    if counter is not None:
        backend.to_numpy(counter)


class StepCallback(_Callback):
    """End a step at the end of each batch, for ``run(repair=True)`` and ``RUEDA_REPAIR=1``.

    :class:`~rueda.keras.callbacks.CommitStateCallback` does so, too.
    """

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if _core.repairs():
            # self.model brings the variables back from JAX.
            wait_for_step(self.model)
            _core.step()


class CommitStateCallback(StepCallback):
    """Commit an elastic state every ``batches_per_commit`` batches and after each epoch.

    More commits lose less work when a rank is lost, and take more time.
    """

    def __init__(self, state: Any, batches_per_commit: int = 1) -> None:
        super().__init__()
        self.state = state
        self.batches_per_commit = batches_per_commit
        self._left = batches_per_commit

    def on_train_begin(self, logs: Any = None) -> None:
        self._left = self.batches_per_commit

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        self._left -= 1
        if self._left == 0:
            self._commit()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        self._commit()

    def _commit(self) -> None:
        self._left = self.batches_per_commit
        _ = self.model  # brings the variables back from JAX
        self.state.commit()


class UpdateBatchStateCallback(_Callback):
    """Keep the batch in ``state.batch``; shorten the epoch that goes on after a change."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self._steps: int | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        self._steps = None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if (self.params or {}).get("steps"):
            if self._steps is None:
                self._steps = self.params["steps"]
            self.params["steps"] = self._steps - self.state.batch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.state.batch = batch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        self.state.batch = 0


class UpdateEpochStateCallback(_Callback):
    """Keep the number of finished epochs in ``state.epoch``, across calls of ``fit()``."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self.initial_epoch = state.epoch

    def on_train_begin(self, logs: Any = None) -> None:
        self.initial_epoch = self.state.epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        self.state.epoch = self.initial_epoch + epoch + 1
