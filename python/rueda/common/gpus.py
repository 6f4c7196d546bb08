# SPDX-License-Identifier: Apache-2.0
"""What the GPUs of this host do."""

from __future__ import annotations

from typing import Any

from rueda import _core


def metrics() -> dict[str, Any]:
    """Return the metrics of this host, after ``init()``.

    ``"gpus"`` is a list with a dictionary for each NVIDIA GPU of the host, counted as
    ``nvidia-smi`` counts them: ``index``, ``name``, ``uuid``, ``busy_percent`` and
    ``memory_busy_percent`` (the time lately in which a kernel ran, or memory was busy),
    ``memory_used_bytes``, ``memory_total_bytes``, ``power_watts``, ``power_limit_watts``,
    ``celsius``. What a GPU does not tell is None. ``"gpu_error"`` is empty, or says why the
    list is, for example that the driver's library NVML is not there.
    """
    gpus, error = _core.gpu_metrics()
    for gpu in gpus:
        for key, value in gpu.items():
            if key != "index" and value == -1:
                gpu[key] = None
    return {"gpus": gpus, "gpu_error": error}
