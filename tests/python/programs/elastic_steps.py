# SPDX-License-Identifier: Apache-2.0
"""A training whose ranks come and go, without any framework.

``elastic_steps.py LOG STEPS [PAUSE]``: every rank appends lines to the file LOG,
each a JSON list: what, process, rank, size, step, time, weights. ``KILL`` names the
ranks that kill themselves, in the first term that they see: ``[[rank, step], ...]``.
With ``SAMPLES=N`` the ranks share epochs of N samples by a ledger, and the file
LOG.counts gets how often each was seen in each epoch.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rueda.common import elastic
from rueda.common.basics import basics
from rueda.common.objects import allgather_object, broadcast_object
from rueda.data import Ledger

log = Path(sys.argv[1])
steps = int(sys.argv[2])
pause = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
orders = [tuple(order) for order in json.loads(os.environ.get("KILL", "[]"))]
samples = int(os.environ.get("SAMPLES", "0"))
terms = 0


def write(what: str, state: elastic.ObjectState) -> None:
    place = [os.getpid(), basics.rank(), basics.size()]
    line = json.dumps([what, *place, state.step, time.time(), state.weights]) + "\n"
    with log.open("a") as file:
        file.write(line)


def batches(state: elastic.ObjectState) -> Iterator[list[int]]:
    """Without an end; one epoch after another."""
    while samples == 0:
        yield []
    while True:
        if len(state.counts) <= ledger.epoch:
            state.counts = [*state.counts, {}]
        yield from ledger.batches(2)
        ledger.set_epoch(ledger.epoch + 1)


def count(state: elastic.ObjectState, seen: list[list[int]]) -> None:
    """What all ranks have seen in this step, as a model would."""
    last = dict(state.counts[-1])
    for sample in (one for part in seen for one in part):
        last[str(sample)] = last.get(str(sample), 0) + 1
    state.counts = [*state.counts[:-1], last]


def train(state: elastic.ObjectState) -> None:
    global terms
    terms += 1
    write("begins", state)
    mine = batches(state)
    while state.step < steps:
        if terms == 1 and (basics.rank(), state.step) in orders:
            write("dies", state)
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(pause)
        gradient = (state.step % 7) / 8 + sum(state.weights) / 4
        seen = next(mine)
        parts, shares = zip(*allgather_object((gradient, seen), name="gradient"))
        if samples > 0:
            count(state, shares)
        state.weights = [weight - sum(parts) / len(parts) / 2 for weight in state.weights]
        state.step += 1
        write("did", state)
        state.commit()
        write("committed", state)


def reset() -> None:
    basics.shutdown()
    basics.init()


basics.init()
ledger = Ledger(samples)
state = elastic.ObjectState(
    broadcast_object, basics.rank, step=0, weights=[float(basics.rank()), 1.0], counts=[],
    ledger=ledger,
)  # fmt: skip
elastic.run_fn(train, reset)(state)
write("ends", state)
if samples > 0 and basics.rank() == 0:
    log.with_suffix(".counts").write_text(json.dumps(state.counts))
