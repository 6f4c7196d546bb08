# SPDX-License-Identifier: Apache-2.0
"""A Python exception in one rank of a training script, as its user sees it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from ranks import Done, environment

pytest.importorskip("torch", reason="missing tool: torch")

LIMIT_S = 120

# Rank 1 meets bad data in its third step; the others wait for its gradients.
SCRIPT = """
import signal
import torch
import {package}.torch as hvd

hvd.init()
if hvd.rank() != 1:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # to say what it has to say
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)

def batch(step):
    if hvd.rank() == 1 and step == 2:
        raise ValueError("line 7 of the data has no label")
    return torch.ones(3, 4)

for step in range(5):
    optimizer.zero_grad()
    loss = model(batch(step)).sum()
    loss.backward()
    optimizer.step()
print("not reached", flush=True)
"""


@pytest.fixture
def run(need_tool: Callable[[str], str], tmp_path: Path) -> Callable[..., Done]:
    """A function that runs the script on so many ranks."""
    program = need_tool("ruedarun")

    def call(size: int, package: str) -> Done:
        script = tmp_path / "train.py"
        script.write_text(SCRIPT.format(package=package))
        return subprocess.run(
            [program, "-np", str(size), sys.executable, str(script)], capture_output=True,
            text=True, timeout=LIMIT_S, env=environment(), stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return call


@pytest.mark.parametrize(("size", "package"), [(2, "rueda"), (3, "horovod")])
def test_the_traceback_that_counts_is_shown_first(run, size: int, package: str) -> None:
    done = run(size, package)
    assert done.returncode == 1
    assert "not reached" not in done.stdout
    raised = re.findall(r"^\[(\d)\]<stderr>:(\w+(?:\.\w+)*): ", done.stderr, re.M)
    assert raised[0] == ("1", "ValueError"), done.stderr
    # The launcher sums up by the rank that was the cause, not by those that followed.
    told = done.stderr[done.stderr.index("ruedarun: ") :]
    assert "ValueError: line 7 of the data has no label" in told


def test_the_other_ranks_know_why(run) -> None:
    done = run(3, "rueda")
    for rank in (0, 2):
        text = "\n".join(
            line for line in done.stderr.splitlines() if line.startswith(f"[{rank}]<stderr>:")
        )
        assert "HorovodInternalError" in text, done.stderr
        assert "ValueError: line 7 of the data has no label" in text
