# SPDX-License-Identifier: Apache-2.0
"""What a distributed optimizer is told, checked once for every version of Keras."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from rueda.common.basics import Average, Sum
from rueda.common.process_sets import ProcessSet, global_process_set

from .compression import Compression

__all__ = ["Options", "check", "check_groups"]


class Options(NamedTuple):
    """How the gradients of an optimizer are reduced."""

    op: int = Average
    compression: Any = Compression.none
    sparse_as_dense: bool = False
    predivide: float = 1.0
    passes: int = 1
    is_average_of_passes: bool = False
    groups: int | list[list[Any]] | None = None
    process_set: ProcessSet = global_process_set
    scales_local: bool = True


def check(options: Options, num_groups: int = 0) -> Options:
    """Return the options, or raise :class:`ValueError` for those that cannot be."""
    if options.op not in (Average, Sum):
        raise ValueError("op of a Keras optimizer is Average or Sum")
    if options.predivide != 1.0 and options.op != Average:
        raise ValueError("gradient_predivide_factor is for op=Average only")
    if options.passes < 1:
        raise ValueError(f"backward_passes_per_step has to be 1 or more, not {options.passes}")
    if num_groups:
        warnings.warn("num_groups is now called groups", DeprecationWarning, stacklevel=3)
        if options.groups is None:
            options = options._replace(groups=num_groups)
    check_groups(options.groups)
    return options


def check_groups(groups: Any) -> None:
    """Raise :class:`ValueError` unless groups are None, a number or lists of variables."""
    if groups is None:
        return
    if isinstance(groups, int) and not isinstance(groups, bool):
        if groups > 0:
            return
    elif isinstance(groups, Sequence) and all(isinstance(part, (list, tuple)) for part in groups):
        members = [id(variable) for part in groups for variable in part]
        if len(set(members)) == len(members):
            return
        raise ValueError("a variable is in groups more than once")
    raise ValueError(
        "groups has to be a positive number of groups or a list of lists of variables, "
        f"not {groups!r}"
    )
