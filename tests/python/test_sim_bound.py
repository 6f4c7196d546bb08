# SPDX-License-Identifier: Apache-2.0
"""`rueda sim` of 512 ranks, beside what the network allows; a file of its own, to run beside
test_sim.py."""

from __future__ import annotations

import pytest
from test_sim import LARGE, rows, sim  # noqa: F401 -- fixtures


@pytest.mark.parametrize("model", ["resnet101", "inception3", "vgg16"])
def test_512_ranks_come_near_the_bound(rows, model: str) -> None:  # noqa: F811
    """128 hosts of 4 ranks at 25 Gbit/s: docs/scaling.md has the whole comparison."""
    row = rows("--model", model, *LARGE)[0]
    assert row["bound_ms"] / row["step_ms"] > 0.95, row
