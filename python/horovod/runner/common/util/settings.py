# SPDX-License-Identifier: Apache-2.0
"""What a job is told, as an object with Horovod's names."""

from __future__ import annotations

from typing import Any

_DEFAULTS: dict[str, Any] = {
    "num_proc": None,
    "verbose": 0,
    "ssh_port": None,
    "ssh_identity_file": None,
    "extra_mpi_args": None,
    "tcp_flag": None,
    "binding_args": None,
    "key": None,
    "start_timeout": None,
    "output_filename": None,
    "run_func_mode": None,
    "nics": None,
    "elastic": False,
    "prefix_output_with_timestamp": False,
}


class BaseSettings:
    """The settings are keyword arguments and attributes."""

    def __init__(self, num_proc: int | None = None, verbose: int = 0, **settings: Any) -> None:
        unknown = sorted(set(settings) - set(_DEFAULTS))
        if unknown:
            raise TypeError(f"{type(self).__name__} has no setting {', '.join(unknown)}")
        vars(self).update({**_DEFAULTS, **settings, "num_proc": num_proc, "verbose": verbose})


class Settings(BaseSettings):
    """With hosts, ``"a:4,b:4"``."""

    def __init__(self, hosts: str | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.hosts = hosts
