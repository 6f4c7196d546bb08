# SPDX-License-Identifier: Apache-2.0
"""Write what `rueda sim --model FILE` wants to know of a network that PyTorch trains.

    from record_model import record
    record("mine.model", net, lambda: loss_of(net(x), y), batch=8)

The file has the gradients in the order in which the backward pass makes them, and how
long it takes for each; docs/scaling.md describes it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn


def record(
    path: str | Path,
    net: nn.Module,
    loss: Callable[[], torch.Tensor],
    batch: float = 1,
    steps: int = 5,
    name: str = "recorded",
) -> None:
    """Run some steps of the network alone, and write the medians of its times to `path`.

    `loss` is the forward pass. Gradients are dropped after each step.
    """
    named = {id(one): which for which, one in net.named_parameters() if one.requires_grad}
    made: list[tuple[str, float]] = []

    def note(parameter: torch.Tensor) -> None:
        made.append((named[id(parameter)], time.perf_counter()))

    hooks = [
        one.register_post_accumulate_grad_hook(note)
        for one in net.parameters()
        if one.requires_grad
    ]
    orders: list[list[str]] = []
    gaps: dict[str, list[float]] = {}
    forwards, totals = [], []
    for step in range(steps + 1):
        made.clear()
        began = time.perf_counter()
        value = loss()
        before = turned = time.perf_counter()
        value.backward()
        ended = time.perf_counter()
        net.zero_grad(set_to_none=True)
        if step == 0:  # finds its memory
            continue
        orders.append([which for which, _ in made])
        for which, at in made:
            gaps.setdefault(which, []).append(at - before)
            before = at
        forwards.append(turned - began)
        totals.append(ended - began)
    for hook in hooks:
        hook.remove()
    total, forward = statistics.median(totals), statistics.median(forwards)
    shapes = {which: tuple(one.shape) or (1,) for which, one in net.named_parameters()}
    lines = [
        "# Recorded by examples/scaling/record_model.py. The last column is nanoseconds.",
        f"model {name.replace(' ', '-')}",
        f"batch {batch:g}",
        f"compute {1e3 * total:.6f}ms",
        f"forward {forward / total:.6f}",
    ]
    for which in orders[-1]:
        shape = "x".join(map(str, shapes[which]))
        lines.append(f"tensor {which} {shape} {1e9 * statistics.median(gaps[which]):.0f}")
    Path(path).write_text("\n".join(lines) + "\n")
