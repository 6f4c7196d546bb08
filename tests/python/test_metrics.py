# SPDX-License-Identifier: Apache-2.0
"""rueda.metrics(): what the GPUs of the host do, or why that is not known.

There is no GPU: tests/support/fake/nvml.c stands in for its driver's library.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

from ranks import environment

ROOT = Path(__file__).parent.parent.parent
LIMIT_S = 120
PROGRAM = """
import json, rueda
from rueda.common.life import init, shutdown
init()
print("TOLD", json.dumps(rueda.metrics()))
shutdown()
"""


def ask(library: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(RUEDA_NVML_LIB=library),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.split("TOLD", 1)[1])
    return told


def test_each_gpu_is_told(need_tool: Callable[[str], str], tmp_path: Path) -> None:
    library = tmp_path / "libnvml_stand_in.so.1"
    subprocess.run(
        [need_tool("cc"), "-shared", "-fPIC", "-o", str(library),
         str(ROOT / "tests/support/fake/nvml.c")],
        check=True, timeout=LIMIT_S,
    )  # fmt: skip
    told = ask(str(library))
    assert told["gpu_error"] == ""
    first, second = told["gpus"]
    assert first == {
        "index": 0, "name": "stand-in 0", "uuid": "GPU-0", "busy_percent": 87,
        "memory_busy_percent": 31, "memory_used_bytes": 20 << 30,
        "memory_total_bytes": 80 << 30, "power_watts": 123.5, "power_limit_watts": 700.0,
        "celsius": 39,
    }  # fmt: skip
    assert second["busy_percent"] is None and second["power_watts"] is None


def test_without_the_library_it_says_why() -> None:
    told = ask("/there/is/no/libnvidia-ml.so.1")
    assert told["gpus"] == []
    assert "/there/is/no/libnvidia-ml.so.1" in told["gpu_error"]
    assert "RUEDA_NVML_LIB" in told["gpu_error"]
