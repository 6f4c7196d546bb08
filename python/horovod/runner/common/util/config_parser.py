# SPDX-License-Identifier: Apache-2.0
"""The variables of horovodrun's options."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

HOROVOD_FUSION_THRESHOLD = "HOROVOD_FUSION_THRESHOLD"
HOROVOD_CYCLE_TIME = "HOROVOD_CYCLE_TIME"
HOROVOD_CACHE_CAPACITY = "HOROVOD_CACHE_CAPACITY"
HOROVOD_HIERARCHICAL_ALLREDUCE = "HOROVOD_HIERARCHICAL_ALLREDUCE"
HOROVOD_HIERARCHICAL_ALLGATHER = "HOROVOD_HIERARCHICAL_ALLGATHER"
HOROVOD_TORUS_ALLREDUCE = "HOROVOD_TORUS_ALLREDUCE"
HOROVOD_AUTOTUNE = "HOROVOD_AUTOTUNE"
HOROVOD_AUTOTUNE_LOG = "HOROVOD_AUTOTUNE_LOG"
HOROVOD_AUTOTUNE_WARMUP_SAMPLES = "HOROVOD_AUTOTUNE_WARMUP_SAMPLES"
HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE = "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE"
HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES = "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES"
HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE = "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE"
HOROVOD_TIMELINE = "HOROVOD_TIMELINE"
HOROVOD_TIMELINE_MARK_CYCLES = "HOROVOD_TIMELINE_MARK_CYCLES"
HOROVOD_STALL_CHECK_DISABLE = "HOROVOD_STALL_CHECK_DISABLE"
HOROVOD_STALL_CHECK_TIME_SECONDS = "HOROVOD_STALL_CHECK_TIME_SECONDS"
HOROVOD_STALL_SHUTDOWN_TIME_SECONDS = "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"
HOROVOD_MPI_THREADS_DISABLE = "HOROVOD_MPI_THREADS_DISABLE"
HOROVOD_NUM_NCCL_STREAMS = "HOROVOD_NUM_NCCL_STREAMS"
NCCL_IB_DISABLE = "NCCL_IB_DISABLE"
HOROVOD_THREAD_AFFINITY = "HOROVOD_THREAD_AFFINITY"
HOROVOD_GLOO_TIMEOUT_SECONDS = "HOROVOD_GLOO_TIMEOUT_SECONDS"
HOROVOD_LOG_LEVEL = "HOROVOD_LOG_LEVEL"
HOROVOD_LOG_HIDE_TIME = "HOROVOD_LOG_HIDE_TIME"

LOG_LEVELS = ["TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"]

# Argument, variable, and what its value is multiplied by.
_NUMBERS = (
    ("fusion_threshold_mb", HOROVOD_FUSION_THRESHOLD, 1024 * 1024),
    ("cycle_time_ms", HOROVOD_CYCLE_TIME, 1),
    ("cache_capacity", HOROVOD_CACHE_CAPACITY, 1),
    ("autotune_warmup_samples", HOROVOD_AUTOTUNE_WARMUP_SAMPLES, 1),
    ("autotune_steps_per_sample", HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE, 1),
    ("autotune_bayes_opt_max_samples", HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES, 1),
    ("autotune_gaussian_process_noise", HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE, 1),
    ("stall_check_warning_time_seconds", HOROVOD_STALL_CHECK_TIME_SECONDS, 1),
    ("stall_check_shutdown_time_seconds", HOROVOD_STALL_SHUTDOWN_TIME_SECONDS, 1),
    ("num_nccl_streams", HOROVOD_NUM_NCCL_STREAMS, 1),
    ("thread_affinity", HOROVOD_THREAD_AFFINITY, 1),
    ("gloo_timeout_seconds", HOROVOD_GLOO_TIMEOUT_SECONDS, 1),
)
_WORDS = (
    ("autotune_log_file", HOROVOD_AUTOTUNE_LOG),
    ("timeline_filename", HOROVOD_TIMELINE),
    ("log_level", HOROVOD_LOG_LEVEL),
)
_SWITCHES = (
    ("hierarchical_allreduce", HOROVOD_HIERARCHICAL_ALLREDUCE),
    ("hierarchical_allgather", HOROVOD_HIERARCHICAL_ALLGATHER),
    ("torus_allreduce", HOROVOD_TORUS_ALLREDUCE),
    ("autotune", HOROVOD_AUTOTUNE),
    ("timeline_mark_cycles", HOROVOD_TIMELINE_MARK_CYCLES),
    ("no_stall_check", HOROVOD_STALL_CHECK_DISABLE),
    ("mpi_threads_disable", HOROVOD_MPI_THREADS_DISABLE),
    ("tcp_flag", NCCL_IB_DISABLE),
)


def set_env_from_args(env: MutableMapping[str, str], args: Any) -> MutableMapping[str, str]:
    """Set the variables of the given arguments; the environment is returned, too."""
    for name, variable, factor in _NUMBERS:
        value = getattr(args, name, None)
        if value is not None:
            env[variable] = str(value * factor)
    for name, variable in _WORDS:
        value = getattr(args, name, None)
        if value:
            env[variable] = str(value)
    for name, variable in _SWITCHES:
        value = getattr(args, name, None)
        if value is not None:
            env[variable] = "1" if value else "0"
    return env


def validate_config_args(args: Any) -> None:
    """ValueError for numbers below zero."""
    for name, _, _ in _NUMBERS:
        value = getattr(args, name, None)
        if value is not None and value < 0:
            raise ValueError(f"{name}={value} must be >= 0")


def set_args_from_config(args: Any, config: dict[str, Any], override_args: set[str]) -> None:
    """Set arguments from a file of options, but for those that the command line has given."""
    sections = {
        "params": "", "autotune": "autotune_", "timeline": "timeline_",
        "stall_check": "stall_check_", "library_options": "", "logging": "log_",
    }  # fmt: skip
    for section, prefix in sections.items():
        for key, value in (config.get(section) or {}).items():
            name = "autotune" if (section, key) == ("autotune", "enabled") else prefix + key
            if (section, key) == ("stall_check", "enabled"):
                name, value = "no_stall_check", not value
            if name not in override_args and value is not None:
                setattr(args, name, value)
