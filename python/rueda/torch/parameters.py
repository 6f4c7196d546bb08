# SPDX-License-Identifier: Apache-2.0
"""What an optimizer's parameters are called on all ranks, and which go together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

__all__ = ["check_groups", "default_names", "given_names", "split_evenly"]

Groups = list[dict[str, Any]]


def given_names(named_parameters: Iterable[Any] | None) -> dict[torch.Tensor, str]:
    """Names by parameter, or ValueError for what cannot be names."""
    named = list(named_parameters or ())
    for entry in named:
        if not isinstance(entry, tuple) or len(entry) != 2:
            raise ValueError(
                "named_parameters has to be a sequence of tuples (name, parameter), such as "
                f"model.named_parameters(); it holds a {type(entry).__name__}"
            )
    seen: set[str] = set()
    twice = sorted({name for name, _ in named if name in seen or seen.add(name)})  # type: ignore[func-returns-value]
    if twice:
        raise ValueError(
            f"names of parameters must be unique; these occur more than once: {', '.join(twice)}"
        )
    return {param: name for name, param in named}


def check_all_named(names: dict[torch.Tensor, str], groups: Groups) -> None:
    """ValueError if some are named and others are not."""
    if not names:
        return
    missing = [
        f"parameter {index} of group {number}, of shape {tuple(param.shape)}"
        for number, group in enumerate(groups)
        for index, param in enumerate(group["params"])
        if param not in names
    ]
    if missing:
        raise ValueError(
            "named_parameters has no name for some of the optimizer's parameters: "
            f"{'; '.join(missing[:4])}{' and others' if len(missing) > 4 else ''}. "
            "Name all of them, or none"
        )


def default_names(groups: Groups, first_group: int = 0) -> dict[torch.Tensor, str]:
    """Names by place, which are the same on all ranks."""
    return {
        param: name
        for number, group in enumerate(groups, first_group)
        for param, name in zip(group["params"], _names_of(group, number))
    }


def _names_of(group: dict[str, Any], number: int) -> list[str]:
    # torch lets parameters be given to an optimizer by name since 2.6.
    known = group.get("param_names")
    if known is not None:
        return list(known)
    return [f"allreduce.noname.{number}.{index}" for index in range(len(group["params"]))]


def check_groups(groups: Any) -> None:
    """ValueError unless groups are None, a positive number or lists of parameters."""
    if groups is None or (isinstance(groups, int) and not isinstance(groups, bool) and groups > 0):
        return
    if not isinstance(groups, list):
        raise ValueError(
            "groups has to be a positive number of groups or a list of lists of parameters, "
            f"not {groups!r}"
        )
    seen: set[int] = set()
    for number, group in enumerate(groups):
        if not isinstance(group, (list, tuple)):
            raise ValueError(f"groups[{number}] is a {type(group).__name__}, not a list")
        for param in group:
            if not isinstance(param, torch.Tensor):
                raise ValueError(
                    f"groups[{number}] holds a {type(param).__name__}; give the parameters "
                    "themselves"
                )
            if id(param) in seen:
                raise ValueError(
                    f"a parameter of shape {tuple(param.shape)} is in groups more than once"
                )
            seen.add(id(param))


def split_evenly(items: list[Any], parts: int) -> list[list[Any]]:
    """Cut into this many runs of items of nearly the same length; none is empty."""
    size, more = divmod(len(items), parts)
    ends = [size * part + min(part, more) for part in range(parts + 1)]
    return [items[start:end] for start, end in zip(ends, ends[1:]) if end > start]
