# SPDX-License-Identifier: Apache-2.0
"""The gradients of one optimizer on their way, whatever Keras and its back end are."""

from __future__ import annotations

import itertools
import os
import warnings
import weakref
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from rueda import _core
from rueda.common import arrays
from rueda.common.agreement import Agreement
from rueda.common.basics import Min
from rueda.common.operations import set_of

from . import backend
from .compression import NoneCompressor
from .options import Options

__all__ = ["Reducer"]

_REMEDY = "hvd.callbacks.BroadcastGlobalVariablesCallback(0) to the callbacks of fit()"

_live: weakref.WeakSet[Reducer] = weakref.WeakSet()

# Optimizers are numbered in the order of their first steps, which ranks share: their names
# and those of their variables depend on what else a rank has made. By process set.
_numbers: defaultdict[int, itertools.count[int]] = defaultdict(itertools.count)


class Reducer:
    """Reduces what an optimizer is given, and knows which variables are not to be."""

    #: Has a step gone through one of them, or been traced?
    any_has_run = False

    def __init__(self, options: Options) -> None:
        self.options = options
        self.has_run = False  # the same for this one
        self.variables: list[Any] = []  # as they were last seen
        self._number: int | None = None
        self._local: dict[int, Any] = {}
        self.agreement = Agreement(options.process_set)
        _live.add(self)

    # ---- Which --------------------------------------------------------------

    def register_local(self, variable: Any) -> None:
        """Leave the gradient of this variable to this rank alone."""
        self._local[id(variable)] = variable

    def is_local(self, variable: Any) -> bool:
        return id(variable) in self._local

    def local_variables(self) -> list[Any]:
        return list(self._local.values())

    def note_step(self) -> None:
        """A step goes through here, or is traced."""
        self.has_run = Reducer.any_has_run = True

    def is_alone(self) -> bool:
        """Is there no other rank to reduce with?"""
        if _core.size() == 1 and os.environ.get("HOROVOD_ELASTIC") != "1":
            return True
        return not self.options.process_set.included()

    def _names(self, count: int) -> list[str]:
        if self._number is None:
            self._number = next(_numbers[set_of(self.options.process_set)])
        return [f"keras.{self._number}.{i}" for i in range(count)]

    def _parts(self, places: Sequence[int], variables: Sequence[Any]) -> list[list[int]]:
        """Return which of these places are reduced together."""
        groups = self.options.groups
        if groups is None:
            return []
        if isinstance(groups, int):
            size, more = divmod(len(places), groups)
            ends = [size * i + min(i, more) for i in range(groups + 1)]
            parts = [list(places[start:end]) for start, end in zip(ends, ends[1:])]
        else:
            place_of = {id(variables[i]): i for i in places}
            parts = [[place_of[id(v)] for v in part if id(v) in place_of] for part in groups]
        return [part for part in parts if part]

    # ---- Gradients ----------------------------------------------------------

    def reduce(
        self, gradients: Sequence[Any], variables: Sequence[Any], scale: float = 1.0
    ) -> list[Any]:
        """Return the gradients of all ranks, times ``scale``. None stays None."""
        self.note_step()
        self.variables = list(variables)
        results = list(gradients)
        if self.is_alone():
            return [self._times(gradient, scale) for gradient in results]
        names = self._names(len(results))
        places = []
        for i, variable in enumerate(variables):
            if results[i] is None:
                continue
            if self.is_local(variable):
                results[i] = self._times(results[i], scale * self._local_scale())
            else:
                places.append(i)
        self._reduce(results, places, names, self._parts(places, variables), scale)
        return results

    def _reduce(
        self,
        results: list[Any],
        places: list[int],
        names: list[str],
        parts: list[list[int]],
        scale: float,
    ) -> None:
        """Replace what is at these places of the list."""
        if not places:
            return
        options = self.options
        if options.sparse_as_dense:
            for i in places:
                results[i] = backend.as_dense(results[i])
        packed = [self._pack(results[i]) for i in places]
        index_of = {place: index for index, place in enumerate(places)}
        reduced = backend.reduce(
            [tensor for tensor, _ in packed],
            [names[i] for i in places],
            [[index_of[i] for i in part] for part in parts],
            backend.How(
                options.op,
                1.0 / options.predivide,
                options.predivide * scale,
                options.process_set,
            ),
            self._check(),
        )
        for i, tensor, (_, context) in zip(places, reduced, packed):
            is_sparse = backend.is_sparse(tensor)
            unpack = NoneCompressor if is_sparse else options.compression
            results[i] = unpack.decompress(tensor, context)

    def _pack(self, gradient: Any) -> tuple[Any, Any]:
        """Rows of a sparse gradient travel as they are."""
        is_sparse = backend.is_sparse(gradient)
        return (gradient, None) if is_sparse else self.options.compression.compress(gradient)

    def _local_scale(self) -> float:
        size = self.options.process_set.size() or 1
        return 1.0 / size if self.options.scales_local else 1.0

    @staticmethod
    def _times(gradient: Any, scale: float) -> Any:
        return gradient if gradient is None or scale == 1.0 else backend.times(gradient, scale)

    def all_of(self, flag: Any) -> Any:
        """Is this true on all ranks? A tensor of the back end."""
        from .flavor import keras

        self.note_step()
        if self.is_alone():
            return flag
        number = keras.ops.cast(flag, "int32")
        how = backend.How(Min, 1.0, 1.0, self.options.process_set)
        name = f"{self._names(1)[0]}.is_finite"
        return keras.ops.cast(backend.reduce([number], [name], [], how, None)[0], "bool")

    # ---- Do the ranks agree? ------------------------------------------------

    def _check(self) -> backend.Check | None:
        if _core.check_every() == 0:
            return None
        others = {
            id(variable)
            for other in list(_live)
            if other.options.process_set is not self.options.process_set
            for variable in other.variables
        }
        compared = [
            (i, variable)
            for i, variable in enumerate(self.variables)
            if not self.is_local(variable) and id(variable) not in others
        ]
        places = [i for i, _ in compared]
        values = [backend.value_of(variable) for _, variable in compared]
        titles = [str(getattr(v, "path", getattr(v, "name", i))) for i, v in compared]

        def compare(*arrays_: Any) -> None:
            # Ranks may have given the same variable other names, but not another place.
            keys = [f"{i:06}" for i in places]
            digests = {key: arrays.digest_of(array) for key, array in zip(keys, arrays_)}
            words = self.agreement.compare(digests, _REMEDY)
            if words is None:
                return
            for key, title in zip(keys, titles):
                words = words.replace(f'"{key}"', f'"{title}"')
            warnings.warn(words, stacklevel=2)

        return backend.Check(self.agreement, values, compare)
