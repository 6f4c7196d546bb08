# SPDX-License-Identifier: Apache-2.0
"""Our strategy of TensorFlow beside its own, which TF_CONFIG starts on the same ranks."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from typing import Callable

import pytest
from ranks import environment, program

for tool in ("tensorflow", "tf_keras"):
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"missing tool: {tool}", allow_module_level=True)

LIMIT_S = 300


def train(need_tool: Callable[[str], str], *words: str) -> list[dict[str, list[float]]]:
    """What strategy_steps.py says on each of two ranks; the last of words are its own."""
    done = subprocess.run(
        [need_tool("ruedarun"), "-np", "2", *words[:-1], sys.executable,
         program("strategy_steps.py"), words[-1]],
        capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
        env=environment(
            TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_USE_LEGACY_KERAS="1"
        ),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.findall(r"^\[\d\]<stdout>:(\{.*\})$", done.stdout, re.M)
    assert len(said) == 2, done.stdout
    return [json.loads(one) for one in said]


def test_it_trains_as_that_of_tensorflow(need_tool) -> None:
    ours = train(need_tool, "--tf-config", "rueda")
    theirs = train(need_tool, "multiworker")  # by tf_config()
    assert ours[0] == ours[1]
    assert theirs[0] == theirs[1]
    for what, least in (("loop", 10), ("input", 5), ("fit", 10)):
        assert len(ours[0][what]) == len(theirs[0][what]) >= least
        assert ours[0][what] == pytest.approx(theirs[0][what], rel=1e-4, abs=1e-5)
