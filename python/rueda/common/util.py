# SPDX-License-Identifier: Apache-2.0
"""Small helpers that scripts and other packages import."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Callable, TypeVar

from .basics import Average, Sum, basics

_T = TypeVar("_T")


def _cache(function: Callable[..., _T]) -> Callable[..., _T]:
    """Call it once for each list of arguments."""
    return functools.lru_cache(maxsize=None)(function)


# ---- What there is ----------------------------------------------------------


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Can ``rueda.<name>`` be used: is it here, and is its framework installed?"""
    here = importlib.util.find_spec(f"rueda.{ext_base_name}") is not None
    there = importlib.util.find_spec(ext_base_name) is not None
    if verbose and not (here and there):
        missing = ext_base_name if here else f"rueda.{ext_base_name}"
        print(f"{missing} is not installed")
    return here and there


def check_extension(ext_name: str, ext_env_var: str, pkg_path: str, *args: str) -> None:
    """Nothing is compiled for a framework, so nothing can be missing."""


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Does the binding of this framework take tensors on a GPU, and is there one?

    Only that of PyTorch takes them.
    """
    if ext_base_name != "torch" or not (extension_available("torch") and basics.cuda_built()):
        return False
    import torch

    return torch.cuda.is_available()


def mpi_built(verbose: bool = False) -> bool:
    return basics.mpi_built()


def gloo_built(verbose: bool = False) -> bool:
    return basics.gloo_built()


def nccl_built(verbose: bool = False) -> int:
    return basics.nccl_built()


def ddl_built(verbose: bool = False) -> bool:
    return basics.ddl_built()


def ccl_built(verbose: bool = False) -> bool:
    return basics.ccl_built()


def get_ext_suffix() -> str:
    """How files of compiled modules end."""
    return sysconfig.get_config_var("EXT_SUFFIX") or ".so"


def get_extension_full_path(pkg_path: str, *args: str) -> str:
    """The path of a compiled module in the folder of a package's file."""
    *folders, name = args
    folder = os.path.dirname(os.path.abspath(pkg_path))
    return os.path.join(folder, *folders, name + get_ext_suffix())


def check_installed_version(name: str, version: str, exception: Exception | None = None) -> None:
    """Any version will do, so only an exception that is given is raised."""
    if exception is not None:
        raise exception


# ---- Arguments --------------------------------------------------------------


def handle_average_backwards_compatibility(op: int | None, average: bool | None) -> int:
    """The reduction: of the argument ``op``, or of the old one, ``average``."""
    if average is None:
        return Average if op is None else op
    if op is not None:
        raise ValueError("average is an old way to say op; give only one of them")
    warnings.warn(
        "average is deprecated; use op=Average or op=Sum", DeprecationWarning, stacklevel=3
    )
    return Average if average else Sum


# ---- Others -----------------------------------------------------------------


@contextmanager
def env(**kwargs: str | None) -> Iterator[None]:
    """Variables of the environment for a while; None takes one away."""
    before = {name: os.environ.get(name) for name in kwargs}
    _set_all(kwargs)
    try:
        yield
    finally:
        _set_all(before)


def _set_all(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def num_rank_is_power_2(num_rank: int) -> bool:
    """Is it a power of two, as Adasum asks for?"""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(l: Sequence[_T], n: int) -> list[Sequence[_T]]:  # noqa: E741 -- Horovod's name
    """Cut into this many pieces; the first ones have one more where that is needed."""
    length, more = divmod(len(l), n)
    starts = [i * length + min(i, more) for i in range(n + 1)]
    return [l[start:end] for start, end in zip(starts, starts[1:])]


def is_iterable(x: Any) -> bool:
    try:
        iter(x)
    except TypeError:
        return False
    return True


@_cache
def is_version_greater_equal_than(ver: str, target: str) -> bool:
    """Compare versions such as 2.13.0; what follows the three numbers is not looked at."""
    if not all(re.match(r"\d+(\.\d+){1,2}", text) for text in (ver, target)):
        raise ValueError(f"versions look like 1.2.3, not {ver!r} and {target!r}")
    return _numbers_of(ver) >= _numbers_of(target)


def _numbers_of(version: str) -> tuple[int, ...]:
    numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
    return tuple(numbers + [0] * (3 - len(numbers)))
