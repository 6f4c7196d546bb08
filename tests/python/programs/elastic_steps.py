# SPDX-License-Identifier: Apache-2.0
"""A training whose ranks come and go, without any framework.

``elastic_steps.py LOG STEPS [PAUSE]``: every rank appends lines to the file LOG,
each a JSON list: what, process, rank, size, step, time, weights. ``KILL`` names the
ranks that kill themselves, in the first term that they see: ``[[rank, step], ...]``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from rueda.common import elastic
from rueda.common.basics import basics
from rueda.common.objects import allgather_object, broadcast_object

log = Path(sys.argv[1])
steps = int(sys.argv[2])
pause = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
orders = [tuple(order) for order in json.loads(os.environ.get("KILL", "[]"))]
terms = 0


def write(what: str, state: elastic.ObjectState) -> None:
    place = [os.getpid(), basics.rank(), basics.size()]
    line = json.dumps([what, *place, state.step, time.time(), state.weights]) + "\n"
    with log.open("a") as file:
        file.write(line)


def train(state: elastic.ObjectState) -> None:
    global terms
    terms += 1
    write("begins", state)
    while state.step < steps:
        if terms == 1 and (basics.rank(), state.step) in orders:
            write("dies", state)
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(pause)
        gradient = (state.step % 7) / 8 + sum(state.weights) / 4
        parts = allgather_object(gradient, name="gradient")
        state.weights = [weight - sum(parts) / len(parts) / 2 for weight in state.weights]
        state.step += 1
        write("did", state)
        state.commit()
        write("committed", state)


def reset() -> None:
    basics.shutdown()
    basics.init()


basics.init()
state = elastic.ObjectState(
    broadcast_object, basics.rank, step=0, weights=[float(basics.rank()), 1.0]
)
elastic.run_fn(train, reset)(state)
write("ends", state)
