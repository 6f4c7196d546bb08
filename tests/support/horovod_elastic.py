# SPDX-License-Identifier: Apache-2.0
"""A plug-in of pytest for Horovod's own elastic tests; tools/horovod-suite loads it.

These tests call the driver of Horovod's launcher inside the process and patch its
constants. Here stand modules of these names, whose driver is the program
``horovodrun``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from types import ModuleType
from typing import Any

import pytest

_FAILED = "Horovod detected that one or more processes exited with non-zero status"
#: What ``horovodrun`` says when it has reached --reset-limit.
_RESETS = r"exceeds the limit: {}"
_LIMIT_S = 300


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = []  # it may have children
    vars(module).update(members)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, module)
    return module


def _parse_args() -> Namespace:
    """The words of sys.argv; the program parses them itself."""
    return Namespace(words=sys.argv[1:])


def _run_elastic(args: Namespace) -> None:
    words = list(args.words)
    seconds = sys.modules["horovod.runner.elastic.driver"].ELASTIC_TIMEOUT_SECS
    if seconds != _driver.first_timeout:
        words = ["--elastic-timeout", str(seconds), *words]
    launcher = os.path.join(os.path.dirname(sys.executable), "horovodrun")
    done = subprocess.run(
        [launcher, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=_LIMIT_S,
    )  # fmt: skip
    print(done.stdout)
    if done.returncode != 0:
        raise RuntimeError(f"{_FAILED}\n{done.stdout}")


_driver: ModuleType


def pytest_configure(config: pytest.Config) -> None:
    global _driver
    import horovod.runner.launch as launch

    launch.parse_args = _parse_args
    launch._run_elastic = _run_elastic
    _module("horovod.runner.common.util.config_parser", set_env_from_args=lambda env, args: env)
    _module("horovod.runner.elastic")
    _module("horovod.runner.elastic.constants", RESET_LIMIT_EXCEEDED_MESSAGE=_RESETS)
    _module("horovod.runner.gloo_run", _get_min_start_hosts=lambda settings: 2)
    _driver = _module(
        "horovod.runner.elastic.driver",
        DISCOVER_HOSTS_FREQUENCY_SECS=1.0,
        ELASTIC_TIMEOUT_SECS=600,
        first_timeout=600,
    )
