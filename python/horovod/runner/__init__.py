# SPDX-License-Identifier: Apache-2.0
"""``horovod.run()``, which is :func:`rueda.run` with Horovod's arguments and errors."""

from __future__ import annotations

import warnings
from typing import Any, Callable

__all__ = ["run"]


class _HorovodArgs:
    """What a job is told, by the names that Horovod gives to it; None is "not said"."""

    def __init__(self) -> None:
        # Those that are always looked at; launch.py has the list of the others.
        self.num_proc = 1
        self.command: list[str] | None = None
        self.run_func: Callable[[], Any] | None = None
        self.executable: str | None = None
        self.min_num_proc: int | None = None

    def __getattr__(self, name: str) -> Any:
        from .launch import OPTIONS

        if name in OPTIONS:
            return None
        raise AttributeError(name)


def run(
    func,
    args=(),
    kwargs=None,
    num_proc=1,
    min_num_proc=None,
    max_num_proc=None,
    slots=None,
    reset_limit=None,
    cooldown_range=None,
    hosts=None,
    hostfile=None,
    host_discovery_script=None,
    start_timeout=None,
    ssh_port=None,
    ssh_identity_file=None,
    disable_cache=None,
    output_filename=None,
    verbose=None,
    use_gloo=None,
    use_mpi=None,
    mpi_args=None,
    network_interface=None,
    network_interfaces=None,
    executable=None,
    np=None,
    min_np=None,
    max_np=None,
):
    """Call ``func(*args, **kwargs)`` on ``num_proc`` ranks; what they return, in their order.

    The other arguments are options of ``horovodrun`` by the same names. ``np``,
    ``min_np``, ``max_np`` and ``network_interface`` are old names, and warn.

    If a rank fails all are ended, and RuntimeError is raised; its cause is the
    exception of the rank that failed first. :func:`rueda.run` raises that one.
    """
    from .launch import _run

    if network_interface is not None:
        _warn("network_interface", "network_interfaces")
        network_interfaces = network_interface.split(",")
    if np is not None:
        _warn("np", "num_proc")
        num_proc = np
    if min_np is not None:
        _warn("min_np", "min_num_proc")
        min_num_proc = min_np
    if max_np is not None:
        _warn("max_np", "max_num_proc")
        max_num_proc = max_np
    if hosts is not None and hostfile is not None:
        raise ValueError("hosts and hostfile both say where to run: give one of them")
    if use_gloo and use_mpi:
        raise ValueError("use_gloo and use_mpi exclude each other: give one of them")

    job = _HorovodArgs()
    job.num_proc = num_proc
    job.min_num_proc = min_num_proc
    job.max_num_proc = max_num_proc
    job.slots = slots
    job.reset_limit = reset_limit
    job.cooldown_range = cooldown_range
    job.hosts = hosts
    job.hostfile = hostfile
    job.host_discovery_script = host_discovery_script
    job.start_timeout = start_timeout
    job.ssh_port = ssh_port
    job.ssh_identity_file = ssh_identity_file
    job.disable_cache = disable_cache
    job.output_filename = output_filename
    job.verbose = verbose
    job.use_gloo = use_gloo
    job.use_mpi = use_mpi
    job.mpi_args = mpi_args
    job.nics = network_interfaces
    job.executable = executable
    job.run_func = (func, tuple(args), dict(kwargs or {}))
    return _run(job)


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is the old name of {new}", DeprecationWarning, stacklevel=3)
