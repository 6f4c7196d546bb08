# SPDX-License-Identifier: Apache-2.0
"""``tf.GradientTape`` whose gradients are reduced over all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from rueda.common.basics import Average
from rueda.common.process_sets import ProcessSet, global_process_set

from .compression import Compression
from .reduction import Reducer, check_options

__all__ = ["DistributedGradientTape", "PartialDistributedGradientTape"]


class _Distributed:
    """What is put before the class of a tape."""

    _reducer: Reducer

    def register_local_source(self, source: Any) -> None:
        """Do not reduce this variable's gradient."""
        self._reducer.set_local(source)

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        use_generic_names: bool = False,
        **more: Any,
    ) -> Any:
        """The tape's gradients, reduced. ``use_generic_names`` is for models that differ."""
        gradients = super().gradient(target, sources, output_gradients, **more)  # type: ignore[misc]
        if not isinstance(sources, (list, tuple, dict)):
            return self._reducer.reduce([gradients], [sources], use_generic_names)[0]
        flat = tf.nest.flatten(sources)
        reduced = self._reducer.reduce(_flat(gradients), flat, use_generic_names)
        if isinstance(sources, (list, tuple)) and len(flat) == len(sources):
            return reduced
        return tf.nest.pack_sequence_as(gradients, reduced, expand_composites=False)

    def get_local_and_global_gradients(
        self,
        target: Any,
        sources: Sequence[Any],
        output_gradients: Any = None,
        use_generic_names: bool = False,
    ) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
        """Pairs of source and gradient: of local sources, and of the others."""
        gradients = self.gradient(target, sources, output_gradients, use_generic_names)
        pairs = list(zip(sources, gradients))
        local = [pair for pair in pairs if self._reducer.is_local(pair[0])]
        others = [pair for pair in pairs if not self._reducer.is_local(pair[0])]
        return local, others


def _flat(gradients: Any) -> list[Any]:
    """As a list; sparse ones stay whole."""
    if isinstance(gradients, (list, tuple)) and all(
        not isinstance(one, (list, tuple, dict)) for one in gradients
    ):
        return list(gradients)
    return tf.nest.flatten(gradients)


def DistributedGradientTape(  # noqa: N802 -- Horovod's name
    gradtape: tf.GradientTape,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Return a tape like this one, whose ``gradient()`` reduces over all ranks.

    ``groups`` is a number of groups, or a list of lists of variables, whose gradients
    are reduced together. Gradients of local sources are divided by the number of ranks
    unless ``scale_local_gradients`` says no, so that they fit an average.
    """
    groups = check_options(op, gradient_predivide_factor, num_groups, groups)
    kind = type(gradtape)
    tape = object.__new__(type(kind.__name__, (_Distributed, kind), {}))
    tape.__dict__.update(gradtape.__dict__)
    tape._reducer = Reducer(
        "DistributedGradientTape", op, compression, sparse_as_dense, gradient_predivide_factor,
        groups, process_set, scale_local_gradients,
    )  # fmt: skip
    return tape


def PartialDistributedGradientTape(  # noqa: N802 -- Horovod's name
    gradtape: tf.GradientTape,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    local_layers: Any = None,
    scale_local_gradients: bool = True,
) -> Any:
    """:func:`DistributedGradientTape` that leaves the weights of some layers to each rank."""
    if local_layers is None:
        local_layers = []
    elif not isinstance(local_layers, (list, tuple, set)):
        local_layers = [local_layers]
    if not all(hasattr(layer, "trainable_weights") for layer in local_layers):
        raise ValueError("local_layers is a layer of Keras's or a list of layers")
    tape = DistributedGradientTape(
        gradtape, device_dense, device_sparse, compression, sparse_as_dense, op,
        gradient_predivide_factor, num_groups, groups, process_set, scale_local_gradients,
    )  # fmt: skip
    for layer in local_layers:
        for weight in layer.trainable_weights:
            tape.register_local_source(weight)
    return tape
