# SPDX-License-Identifier: Apache-2.0
"""How the gradients of a step are reduced: the options, and what is done with them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from rueda.common.basics import Adasum, Average
from rueda.common.process_sets import ProcessSet, global_process_set
from rueda.common.util import split_list

from .agreement import check
from .collectives import allreduce, divide, grouped_allreduce, size_of
from .compression import Compression
from .library import blocks, is_eager

__all__ = ["Reducer", "check_options"]


def check_options(op: int, predivide: float, num_groups: int, groups: Any) -> Any:
    """Return the groups, or raise :class:`ValueError` for options that cannot be."""
    if predivide != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor is for op=Average only")
    if num_groups != 0:
        warnings.warn("num_groups is now called groups", DeprecationWarning, stacklevel=3)
        groups = num_groups if groups is None else groups
    if groups is None or (isinstance(groups, int) and groups > 0):
        return groups
    if isinstance(groups, list) and all(isinstance(group, (list, tuple)) for group in groups):
        return groups
    raise ValueError(
        "groups has to be a positive number of groups or a list of lists of variables, "
        f"not {groups!r}"
    )


def key_of(variable: Any) -> int:
    """What a variable is known by; that of Keras is the one of TensorFlow in it."""
    return id(getattr(variable, "_value", variable))


def _label_of(variable: Any) -> str:
    """A name for the gradient of a variable, or of a tensor."""
    name = getattr(variable, "path", None) or getattr(variable, "name", None) or "tensor"
    return "HorovodAllreduce_grad_" + "".join(
        letter if letter.isalnum() and letter.isascii() else "_" for letter in str(name)
    )


class Reducer:
    """Reduces lists of gradients in the same way each time."""

    def __init__(
        self,
        name: str,
        op: int = Average,
        compression: Any = Compression.none,
        sparse_as_dense: bool = False,
        predivide: float = 1.0,
        groups: Any = None,
        process_set: ProcessSet = global_process_set,
        scale_local: bool = True,
    ) -> None:
        self._name = name
        self._sparse_as_dense = sparse_as_dense
        self._groups = groups
        self._process_set = process_set
        self._scale_local = scale_local
        self._local: dict[int, Any] = {}  # and the variable, so that its id stays its own
        is_average = op == Average
        self._how = {
            "op": op,
            "compression": compression,
            "prescale_factor": 1.0 / predivide if is_average else 1.0,
            "postscale_factor": predivide if is_average else 1.0,
            "process_set": process_set,
        }

    def set_local(self, variable: Any) -> None:
        """Leave this variable's gradient to each rank."""
        self._local[key_of(variable)] = variable

    def is_local(self, variable: Any) -> bool:
        return key_of(variable) in self._local

    def reduce(
        self, gradients: Sequence[Any], variables: Sequence[Any], use_generic_names: bool = False
    ) -> list[Any]:
        """Return the gradients of these variables, reduced but for those of local ones."""
        results = list(gradients)
        if not self._takes_part():
            return results
        shared = []
        for i, (gradient, variable) in enumerate(zip(results, variables)):
            if gradient is None:
                continue
            if not self.is_local(variable):
                shared.append(i)
            elif self._scale_local:
                results[i] = divide(gradient, size_of(self._process_set))
        if shared:
            compared = check([variables[i] for i in shared], self._process_set)
            # What a graph of TensorFlow 1 does not wait for is never done.
            first = [] if compared is None else [compared]
            with tf.control_dependencies(first), tf.name_scope(f"{self._name}_Allreduce"):
                self._reduce_shared(results, variables, shared, use_generic_names)
        return results

    def _takes_part(self) -> bool:
        """Is there another rank? An elastic job may have one later, in the same graph."""
        if self._process_set.included() is False:
            return False
        return os.environ.get("HOROVOD_ELASTIC") == "1" or (self._process_set.size() or 1) > 1

    def _reduce_shared(
        self, results: list[Any], variables: Sequence[Any], shared: list[int], is_generic: bool
    ) -> None:
        if self._sparse_as_dense:
            for i in shared:
                results[i] = tf.convert_to_tensor(results[i])
        for number, part in enumerate(self._parts(variables, shared)):
            if is_generic:
                name = f"grad_{number if len(part) > 1 else part[0]}"
            else:
                name = None if is_eager() else _label_of(variables[part[0]])
            if len(part) == 1:
                reduced = [
                    allreduce(
                        results[part[0]], name=name, ignore_name_scope=is_generic, **self._how
                    )
                ]
            else:
                reduced = grouped_allreduce(
                    [results[i] for i in part], name=name, ignore_name_scope=is_generic,
                    **self._how,
                )  # fmt: skip
            for i, gradient in zip(part, reduced):
                results[i] = gradient

    def _parts(self, variables: Sequence[Any], shared: list[int]) -> list[list[int]]:
        """Which gradients are reduced together."""
        if isinstance(self._groups, list):
            return self._parts_by_variable(variables, shared)
        if self._groups is not None:
            parts = split_list(shared, min(self._groups, len(shared)))
            return [list(part) for part in parts if part]
        # Where nothing is gained by letting them go one by one.
        if is_eager() or blocks:
            return [shared]
        return [[i] for i in shared]

    def _parts_by_variable(self, variables: Sequence[Any], shared: list[int]) -> list[list[int]]:
        place_of = {key_of(variables[i]): i for i in shared}
        parts = []
        for group in self._groups:
            keys = [key_of(variable) for variable in group]
            part = [place_of.pop(key) for key in keys if key in place_of]
            if part:
                parts.append(part)
        return parts + [[i] for i in place_of.values()]


def check_adasum(op: int, average_aggregated_gradients: bool) -> None:
    if op == Adasum and average_aggregated_gradients:
        raise ValueError("Adasum does not take average_aggregated_gradients=True")
