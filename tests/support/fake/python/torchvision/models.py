# SPDX-License-Identifier: Apache-2.0
"""The residual networks of examples/pytorch/synthetic_benchmark.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_PATH = Path(__file__).resolve().parents[5] / "examples" / "pytorch" / "synthetic_benchmark.py"
_spec = importlib.util.spec_from_file_location("synthetic_benchmark", _PATH)
assert _spec is not None and _spec.loader is not None
_example = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_example)

resnet18 = _example.MODELS["resnet18"]
resnet34 = _example.MODELS["resnet34"]
resnet50 = _example.MODELS["resnet50"]
