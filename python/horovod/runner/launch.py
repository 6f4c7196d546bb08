# SPDX-License-Identifier: Apache-2.0
"""What scripts and test suites import from ``horovod.runner.launch``.

The launcher itself is a program, ``horovodrun``; here it is called.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rueda import runner
from rueda.runner import job

from horovod.common.util import ccl_built, ddl_built, gloo_built, mpi_built, nccl_built

__all__ = [
    "run_commandline",
    "parse_args",
    "gloo_built",
    "mpi_built",
    "nccl_built",
    "ddl_built",
    "ccl_built",
]

#: Horovod's name of an option, and that of the launcher.
OPTIONS = {
    "num_proc": "num_proc",
    "hosts": "hosts",
    "hostfile": "hostfile",
    "config_file": "config_file",
    "start_timeout": "start_timeout",
    "ssh_port": "ssh_port",
    "ssh_identity_file": "ssh_identity_file",
    "disable_cache": "disable_cache",
    "output_filename": "output_filename",
    "prefix_output_with_timestamp": "prefix_output_with_timestamp",
    "verbose": "verbose",
    "nics": "network_interfaces",
    "fusion_threshold_mb": "fusion_threshold_mb",
    "cycle_time_ms": "cycle_time_ms",
    "cache_capacity": "cache_capacity",
    "hierarchical_allreduce": "hierarchical_allreduce",
    "hierarchical_allgather": "hierarchical_allgather",
    "torus_allreduce": "torus_allreduce",
    "autotune": "autotune",
    "autotune_log_file": "autotune_log_file",
    "autotune_warmup_samples": "autotune_warmup_samples",
    "autotune_steps_per_sample": "autotune_steps_per_sample",
    "autotune_bayes_opt_max_samples": "autotune_bayes_opt_max_samples",
    "autotune_gaussian_process_noise": "autotune_gaussian_process_noise",
    "min_num_proc": "min_np",
    "max_num_proc": "max_np",
    "slots": "slots_per_host",
    "elastic_timeout": "elastic_timeout",
    "reset_limit": "reset_limit",
    "cooldown_range": "blacklist_cooldown_range",
    "host_discovery_script": "host_discovery_script",
    "timeline_filename": "timeline_filename",
    "timeline_mark_cycles": "timeline_mark_cycles",
    "no_stall_check": "no_stall_check",
    "stall_check_warning_time_seconds": "stall_check_warning_time_seconds",
    "stall_check_shutdown_time_seconds": "stall_check_shutdown_time_seconds",
    "mpi_threads_disable": "mpi_threads_disable",
    "mpi_args": "mpi_args",
    "tcp_flag": "tcp",
    "binding_args": "binding_args",
    "num_nccl_streams": "num_nccl_streams",
    "thread_affinity": "thread_affinity",
    "gloo_timeout_seconds": "gloo_timeout_seconds",
    "log_level": "log_level",
    "log_with_timestamp": "log_with_timestamp",
    "use_gloo": "gloo",
    "use_mpi": "mpi",
    "use_jsrun": "jsrun",
    # Of no use to a launcher that is called; Horovod's own argument objects have them.
    "check_build": None,
    "nic": None,
}

#: Where Horovod keeps what it found out; nothing is kept here.
CACHE_FOLDER = os.path.join(os.path.expanduser("~"), ".horovod")
CACHE_STALENESS_THRESHOLD_MINUTES = 60
SSH_ATTEMPTS = 5
SSH_CONNECT_TIMEOUT_S = 10

# Flags that some give as a number.
_FLAGS = {"disable_cache", "verbose", "tcp_flag", "use_gloo", "use_mpi", "use_jsrun"}


def run_commandline() -> None:
    """Become ``horovodrun`` with the arguments of this program."""
    program = job.find_program("horovodrun")
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(program, [program, *sys.argv[1:]])


_INTEGERS = {
    "num_proc", "start_timeout", "ssh_port", "fusion_threshold_mb", "cache_capacity",
    "autotune_warmup_samples", "autotune_steps_per_sample", "autotune_bayes_opt_max_samples",
    "min_num_proc", "max_num_proc", "slots", "elastic_timeout", "reset_limit",
    "stall_check_warning_time_seconds", "stall_check_shutdown_time_seconds", "num_nccl_streams",
    "thread_affinity", "gloo_timeout_seconds",
}  # fmt: skip
_DECIMALS = {"cycle_time_ms", "autotune_gaussian_process_noise"}
_SWITCHES = {
    "disable_cache", "verbose", "hierarchical_allreduce", "hierarchical_allgather",
    "torus_allreduce", "autotune", "timeline_mark_cycles", "no_stall_check",
    "mpi_threads_disable", "tcp_flag", "log_with_timestamp", "use_gloo", "use_mpi", "use_jsrun",
    "prefix_output_with_timestamp", "check_build",
}  # fmt: skip
_MORE_NAMES = {
    "num_proc": ["-np"], "hosts": ["-H"], "hostfile": ["-hostfile"], "ssh_port": ["-p"],
    "ssh_identity_file": ["-i"], "min_num_proc": ["--min-num-proc"],
    "max_num_proc": ["--max-num-proc"], "nics": ["--network-interface"], "check_build": ["-cb"],
    "prefix_output_with_timestamp": ["-prefix-timestamp"],
}  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="horovodrun", description="Start the ranks of a job.")
    for name, option in OPTIONS.items():
        if name == "nic":
            continue
        words = [*_MORE_NAMES.get(name, []), "--" + (option or name).replace("_", "-")]
        if name in _SWITCHES:
            parser.add_argument(*words, dest=name, action="store_true", default=None)
        elif name == "cooldown_range":
            parser.add_argument(*words, dest=name, type=int, nargs=2)
        else:
            kind = int if name in _INTEGERS else float if name in _DECIMALS else str
            parser.add_argument(*words, dest=name, type=kind)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def parse_args() -> argparse.Namespace:
    """The arguments of this program as horovodrun has them, for :func:`_run`."""
    args = _parser().parse_args()
    args.nics = args.nics.split(",") if args.nics else None
    args.run_func = None
    args.executable = None
    return args


def check_build(verbose: bool | int = False) -> None:
    """Print what this build has, as ``horovodrun --check-build`` does, and end the program."""
    sys.exit(subprocess.call([job.find_program("horovodrun"), "--check-build"]))


def is_gloo_used(
    use_gloo: bool | None = None, use_mpi: bool | None = None, use_jsrun: bool | None = None
) -> bool:
    """Does the launcher start the ranks itself, and not mpirun or jsrun?"""
    return bool(use_gloo) or not (use_mpi or use_jsrun)


def _run_by_settings(
    settings: Any, nics: Iterable[str] | None, env: Mapping[str, str], command: str, use_mpi: bool
) -> None:
    from . import _HorovodArgs

    args = _HorovodArgs()
    args.num_proc = settings.num_proc
    for name in ("hosts", "ssh_port", "ssh_identity_file", "output_filename"):
        value = getattr(settings, name, None)
        if value is not None:
            setattr(args, name, value)
    if nics:
        args.nics = list(nics)
    args.use_mpi = use_mpi or None
    ended = job.launch([*_words(args), "--", "sh", "-c", command], dict(env))
    if ended.code != 0:
        raise RuntimeError(f"{_failure(args, ended.code)}\n{ended.words}")


def _words(args: Any) -> list[str]:
    options = {}
    for name, option in OPTIONS.items():
        value = getattr(args, name, None)
        if option is not None and value is not None:
            options[option] = bool(value) if name in _FLAGS else value
    return runner.words_of(options)


def _run(args: Any) -> list[Any] | None:
    """Run the function or the command of such arguments; the results of a function."""
    words = _words(args)
    if args.run_func is None:
        ended = job.launch([*words, "--", *args.command], job.environment_for_ranks())
        if ended.code != 0:
            raise RuntimeError(f"{_failure(args, ended.code)}\n{ended.words}")
        return None

    call = args.run_func if isinstance(args.run_func, tuple) else (args.run_func, (), {})
    try:
        results = runner.run_words(*call, args.num_proc, words, args.executable)
    except Exception as error:
        rank = runner.rank_of_error(error)
        if rank is None and not isinstance(error, runner.RankError):
            raise  # of the arguments, not of a rank
        raise _runtime_error(args, error, rank) from error
    return results[: args.min_num_proc] if args.min_num_proc else results


_run_static = _run
_run_elastic = _run


def _runtime_error(args: Any, error: Exception, rank: int | None) -> RuntimeError:
    words = f"{type(error).__name__}: {error}".rstrip(": ")
    who = "" if rank is None else f"rank {rank} failed first, by "
    return RuntimeError(f"{_failure(args, getattr(error, 'code', None) or 1)}; {who}{words}")


def _failure(args: Any, code: int) -> str:
    """The words by which programs know a failed job."""
    if getattr(args, "use_mpi", None):
        return f"mpirun failed with exit code {code}"
    return "Horovod detected that one or more processes exited with another status than 0"
