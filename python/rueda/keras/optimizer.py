# SPDX-License-Identifier: Apache-2.0
"""An optimizer of Keras that steps by the gradients of all ranks.

    optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.001 * hvd.size()))
    model.compile(optimizer, loss)

The result is an object of a class that is made here: a subclass of the optimizer's own
class with its name, so that ``isinstance`` and saved models take it for what it was. All
of Keras 3's trainers, on every back end, call ``apply()``, which reduces the gradients
first. Keras 2 has other methods; see legacy.py.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from rueda import _core
from rueda.common.basics import Average, basics
from rueda.common.process_sets import ProcessSet, global_process_set

from . import backend, compiled, loss_scale, options
from .compression import Compression
from .flavor import IS_LEGACY, keras
from .options import Options
from .reducer import Reducer

__all__ = [
    "DistributedOptimizer",
    "PartialDistributedOptimizer",
    "check_synchronised",
    "distribute",
    "reducer_of",
]


class Distributed:
    """What is in front of an optimizer's own methods."""

    _rueda_options = Options()

    @property
    def _rueda(self) -> Reducer:
        """Made on first use: ``from_config()`` makes optimizers without our help."""
        found = self.__dict__.get("_rueda_reducer")
        if found is None:
            # Not by setattr(), which TensorFlow extends.
            found = self.__dict__["_rueda_reducer"] = Reducer(self._rueda_options)
        return found

    @property
    def process_set(self) -> ProcessSet:
        return self._rueda_options.process_set

    @property
    def scale_local_gradients(self) -> bool:
        return self._rueda_options.scales_local

    def register_local_var(self, var: Any) -> None:
        """Leave the gradient of this variable to this rank alone."""
        self._rueda.register_local(var)


class _Keras3(Distributed):
    """The methods of Keras 3."""

    @backend.as_it_is
    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Reduce the gradients over all ranks, then do as the optimizer's own."""
        grads = list(grads)
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
            if not self.built:
                with keras.name_scope(self.name, caller=self):
                    self.build(trainable_variables)
        if self.built and grads:
            variables = trainable_variables or self._trainable_variables
            if self.gradient_accumulation_steps:
                grads = self._reduce_with_earlier(grads, variables)
            else:
                grads = self._rueda.reduce(grads, variables)
        super().apply(grads, trainable_variables)

    def _reduce_with_earlier(self, grads: list[Any], variables: list[Any]) -> list[Any]:
        """In the last pass of a step reduce the sum of all; Keras has summed up the others.

        Its sums are cleared then, so that what it adds to our result is zero.
        """
        self._rueda.note_step()
        passes = self.gradient_accumulation_steps
        places = [i for i, grad in enumerate(grads) if grad is not None]
        mine = [variables[i] for i in places]
        new = [self._as_dense(grads[i]) for i in places]
        sums = [self._accumulated_gradients[self._get_variable_index(v)] for v in mine]
        # Keras divides by the number of passes.
        is_sum = self._rueda_options.passes > 1 and not self._rueda_options.is_average_of_passes
        scale = float(passes) if is_sum else 1.0

        def last() -> list[Any]:
            totals = [keras.ops.add(grad, total) for grad, total in zip(new, sums)]
            return self._rueda.reduce(totals, mine, scale)

        is_last = keras.ops.equal(keras.ops.mod(self._iterations + 1, passes), 0)
        reduced = keras.ops.cond(is_last, last, lambda: new)
        for total in sums:
            keep = keras.ops.convert_to_tensor(total)
            total.assign(keras.ops.where(is_last, keras.ops.zeros_like(keep), keep))
        for i, grad in zip(places, reduced):
            grads[i] = grad
        return grads

    def _as_dense(self, grad: Any) -> Any:
        if backend.is_sparse(grad) and not self._rueda_options.sparse_as_dense:
            raise ValueError(
                "gradients of tf.IndexedSlices are not summed up over several passes; give "
                "sparse_as_dense=True to DistributedOptimizer"
            )
        return backend.as_dense(grad)

    def finalize_variable_values(self, var_list: Any) -> None:
        """As the optimizer's own; ``fit()`` calls it in the end."""
        # With JAX also after an exception, which has more to say.
        if var_list and sys.exc_info()[0] is None:
            _check_has_run(self)
        super().finalize_variable_values(var_list)

    # Keras copies and pickles by the registered name, which is that of a plain optimizer.

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (super().__reduce__()[1], self._rueda_options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        # Variables in groups, and local ones, are those of the model and no copies.
        made = _again(super().__reduce__()[1], self._rueda_options)
        for variable in self._rueda.local_variables():
            made._rueda.register_local(variable)
        return made


# ---- Making one -------------------------------------------------------------


def _class_of(front: type, base: type, chosen: Options) -> type:
    """A class of its own for each optimizer, which from_config() then makes again."""
    own = {
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
        "_rueda_options": chosen,
    }
    made = type(base.__name__, (front, base), own)
    _register(made, base)
    return made


def _register(made: type, base: type) -> None:
    """Have a model that is saved name the optimizer's own class, and load that."""
    saving = getattr(keras, "saving", None)
    if saving is None or not hasattr(saving, "get_registered_name"):
        return
    name = saving.get_registered_name(base)
    if ">" in name and saving.get_registered_object(name) is base:
        package, _, rest = name.partition(">")
        with suppress(ValueError):  # Keras 2.12 registers a name once
            for one in (made, base):
                saving.register_keras_serializable(package, rest)(one)


def distribute(optimizer: Any, chosen: Options) -> Any:
    """Return a distributed optimizer that has all that this one has, its state included."""
    _watch_training()
    compiled.teach()
    made = _distribute(optimizer, chosen)
    if chosen.process_set not in _sets_of_wrapped:
        _sets_of_wrapped.append(chosen.process_set)
    return made


def _distribute(optimizer: Any, chosen: Options) -> Any:
    if IS_LEGACY:
        from . import legacy

        return legacy.distribute(optimizer, chosen)
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise TypeError(
            f"DistributedOptimizer takes an optimizer of Keras {keras.__version__}, not a "
            f"{type(optimizer).__module__}.{type(optimizer).__name__}: make one first, such as "
            "keras.optimizers.Adam(0.001). For tf_keras set TF_USE_LEGACY_KERAS=1"
        )
    if reducer_of(optimizer) is not None:
        raise ValueError("this optimizer is distributed already; give the one it was made of")
    loss_scale.teach(_again)
    made = _made_of(optimizer, chosen)
    _set_passes(getattr(made, "inner_optimizer", made), chosen.passes)
    return made


def _made_of(optimizer: Any, chosen: Options) -> Any:
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        made = _copy(type(optimizer), optimizer)
        made.inner_optimizer = _made_of(optimizer.inner_optimizer, chosen)
        return made
    return _copy(_class_of(_Keras3, type(optimizer), chosen), optimizer)


def _again(saved: tuple[Any, ...], chosen: Options) -> Any:
    """From what Keras saved of an optimizer; its passes are counted there."""
    return _made_of(keras.optimizers.Optimizer._unpickle_model(*saved), chosen)


def _copy(kind: type, optimizer: Any) -> Any:
    """The constructor is not called again: its variables are here already."""
    made = object.__new__(kind)
    made.__dict__.update(optimizer.__dict__)
    return made


def _set_passes(optimizer: Any, passes: int) -> None:
    if passes == 1:
        return
    if optimizer.gradient_accumulation_steps:
        raise ValueError(
            "the optimizer has gradient_accumulation_steps, which counts passes already; leave "
            "out backward_passes_per_step"
        )
    if optimizer.built:
        raise ValueError(
            "backward_passes_per_step needs an optimizer that is not built yet; or make the "
            f"optimizer with gradient_accumulation_steps={passes}"
        )
    optimizer.gradient_accumulation_steps = passes


def DistributedOptimizer(  # noqa: N802 -- the name that scripts use
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: int | list[list[Any]] | None = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Return an optimizer like this one that steps by the gradients of all ranks.

    :param name: a name for the optimizer instead of its own.
    :param device_dense: accepted and ignored, as is ``device_sparse``.
    :param compression: what gradients are made to before they are reduced.
    :param sparse_as_dense: reduce sparse gradients (TensorFlow has them) as dense ones.
    :param gradient_predivide_factor: an average divides by this before the sum, and by the
        rest after it.
    :param op: Average or Sum.
    :param backward_passes_per_step: calls whose gradients are added up before they are
        reduced, once.
    :param average_aggregated_gradients: divide that sum by the number of calls.
    :param num_groups: the old name of a number of groups.
    :param groups: a number of groups of variables, or lists of variables, whose gradients are
        reduced together.
    :param process_set: reduce among these ranks. On others nothing is reduced.
    :param scale_local_gradients: divide gradients of local variables by the number of ranks.
    """
    chosen = options.check(
        Options(
            op, compression, sparse_as_dense, gradient_predivide_factor,
            backward_passes_per_step, average_aggregated_gradients, groups, process_set,
            scale_local_gradients,
        ),
        num_groups,
    )  # fmt: skip
    made = distribute(optimizer, chosen)
    if name is not None:
        setattr(made, "_name" if IS_LEGACY else "name", name)
    return made


def PartialDistributedOptimizer(  # noqa: N802 -- the name that scripts use
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    groups: int | list[list[Any]] | None = None,
    process_set: ProcessSet = global_process_set,
    local_layers: Any = None,
    scale_local_gradients: bool = True,
) -> Any:
    """As :func:`DistributedOptimizer`; weights of ``local_layers`` are not reduced.

    These layers (one or a list) have to have their weights already.
    """
    made = DistributedOptimizer(
        optimizer, name, device_dense, device_sparse, compression, sparse_as_dense,
        gradient_predivide_factor, op, backward_passes_per_step, average_aggregated_gradients,
        0, groups, process_set, scale_local_gradients,
    )  # fmt: skip
    for variable in _weights_of(local_layers):
        reducer_of(made).register_local(variable)
    return made


def _weights_of(layers: Any) -> Iterable[Any]:
    if layers is None:
        return []
    if isinstance(layers, keras.layers.Layer):
        layers = [layers]
    if not isinstance(layers, (list, tuple)) or not all(
        isinstance(layer, keras.layers.Layer) for layer in layers
    ):
        raise ValueError(f"local_layers is a layer of Keras or a list of layers, not {layers!r}")
    return [variable for layer in layers for variable in layer.trainable_weights]


# ---- Asking one -------------------------------------------------------------


def reducer_of(optimizer: Any) -> Reducer | None:
    """Return what reduces the optimizer's gradients; None if it is not distributed."""
    while optimizer is not None:
        if isinstance(optimizer, Distributed):
            return optimizer._rueda
        optimizer = getattr(optimizer, "inner_optimizer", None)
    return None


def _check_has_run(optimizer: Any) -> None:
    reducer = reducer_of(optimizer)
    if reducer is None or reducer.has_run or reducer.is_alone():
        return
    raise RuntimeError(
        "the optimizer is distributed, but no gradient came to it: the ranks were not "
        f"synchronised. Keras {keras.__version__} or this model updates variables without "
        "optimizer.apply() or apply_gradients(); a train_step() of your own has to call one "
        "of them"
    )


@functools.cache
def _watch_training() -> None:
    """Have ``fit()`` fail in its first epoch, whatever callbacks it is given."""
    _look_first("on_train_begin", compiled.check)
    _look_first("on_epoch_end", check_synchronised)


def _look_first(event: str, look: Callable[[Any], None]) -> None:
    """Call a function with the model before the callbacks of an event."""
    kind = keras.callbacks.CallbackList
    own = getattr(kind, event)

    @functools.wraps(own)
    def method(self: Any, *args: Any, **kwargs: Any) -> None:
        # Not by the property, which brings the variables back from JAX.
        known = vars(self)
        look(known.get("_model") or known.get("model"))
        own(self, *args, **kwargs)

    setattr(kind, event, method)


# The process sets of all optimizers that this process has wrapped, used or not.
_sets_of_wrapped: list[ProcessSet] = []


def check_synchronised(model: Any) -> None:
    """Raise :class:`RuntimeError` if steps were taken, but not by the ranks together.

    That is so, too, where an optimizer was wrapped and the model was compiled with a plain
    one. Where nothing was wrapped, each rank may be meant to train alone: a warning.
    """
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None or not model.trainable_variables:
        return
    if reducer_of(optimizer) is not None:
        _check_has_run(optimizer)
        return
    if not basics.is_initialized() or basics.size() == 1 or Reducer.any_has_run:
        return
    words = (
        f"this model trains on each rank alone: its {type(optimizer).__name__} is not one that "
        "DistributedOptimizer() returned, and no such optimizer has been used yet. Give what "
        "DistributedOptimizer() returns to compile(); a copy of a model, or one of "
        "keras.models.load_model(), has a plain optimizer (hvd.load_model() makes a distributed "
        "one)"
    )
    is_mistake = any(one.included() for one in _sets_of_wrapped)
    if is_mistake and _core.check_every() != 0:
        raise RuntimeError(
            f"{words}. If each rank is meant to train this model for itself, call "
            "DistributedOptimizer() after that, or set RUEDA_CHECK=off"
        )
    _warn_once(words)


@functools.cache
def _warn_once(words: str) -> None:
    warnings.warn(words, stacklevel=2)
