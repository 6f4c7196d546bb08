# SPDX-License-Identifier: Apache-2.0
"""A plug-in of pytest for Horovod's own tests; tools/horovod-suite loads it.

Each rank writes how its tests went to RUEDA_SUITE_OUT/<rank>.json: a list of
[name, outcome, words].
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

_RANKS = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_results: dict[str, list[str]] = {}


def pytest_configure(config: pytest.Config) -> None:
    """What the tests cannot have.

    Muon is hidden from those that try every optimizer of torch: it refuses their
    parameters of one dimension on every rank. And those of static process
    sets, which ask for TensorFlow's module but use only what all modules have,
    get torch's where TensorFlow is not installed.
    """
    try:
        import torch
    except ImportError:
        return
    if hasattr(torch.optim, "Muon"):
        torch.optim.Muon.__module__ = "hidden"
    if any("test_process_sets_static" in arg for arg in config.args):
        if importlib.util.find_spec("tensorflow") is None:
            sys.modules["horovod.tensorflow"] = importlib.import_module("horovod.torch")


def _words_of(report: pytest.TestReport) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash is not None else report.longrepr or "")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Of setup, call and teardown the first that did not pass counts."""
    name = report.nodeid.rpartition("::")[2]
    if report.when == "call" or not report.passed:
        if _results.get(name, ["passed"])[0] == "passed":
            _results[name] = [report.outcome, _words_of(report)]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _results["(collection)"] = ["failed", str(report.longrepr)[-400:]]


def pytest_sessionfinish() -> None:
    folder = os.environ.get("RUEDA_SUITE_OUT")
    rank = next((os.environ[name] for name in _RANKS if name in os.environ), "0")
    if folder:
        rows = [[name, *result] for name, result in _results.items()]
        Path(folder, f"{rank}.json").write_text(json.dumps(rows))
