#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure rueda.tensorflow beside MultiWorkerMirroredStrategy, in one run.

    .venv/bin/python bench/tensorflow_step.py [--ranks 2] [--rounds 9] [--only steps,op,start]

steps   whole training steps of three models in a tf.function: ranks that are not
        connected, MultiWorkerMirroredStrategy, rueda's tape, and rueda's strategy. The
        overhead is the step less that of ranks that are not connected. Losses of all
        connected sides have to agree. The step with 400 variables stands beside the
        same step in rueda.torch.
op      an allreduce of 4 KiB in a tf.function beside rueda.torch.allreduce_() by name,
        and a function that has an identity instead.
start   the import of rueda.tensorflow after TensorFlow's own, and the size of the wheel
        in dist/.

All ranks of all sides are started at once and take turns; sides whose turn it is not
sleep. The figure of a repetition is that of its slowest rank, and that of a turn the median
of its repetitions; a ratio is the median over rounds of the ratio in one round. The
tables are in Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import random
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent
CONNECTED = ("multiworker", "rueda", "strategy")
LOSS_DIFFERENCE = 1e-4
LIMIT_S = 300  # more than any turn takes
IMPORT = """
import time, tensorflow
cpu, wall = time.process_time(), time.perf_counter()
import rueda.tensorflow
print(time.process_time() - cpu, time.perf_counter() - wall)
"""


class Rank:
    """A process that does as it is told, line by line."""

    def __init__(self, script: str, side: str, environment: dict[str, str]) -> None:
        self.name = f"rank {environment['BENCH_RANK']} of {side}"
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / script), side], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1, env={**os.environ, **environment},
        )  # fmt: skip
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def tell(self, *words: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")

    def answer(self) -> list:
        try:
            line = self._answers.get(timeout=LIMIT_S)
        except queue.Empty:
            sys.exit(f"tensorflow_step: {self.name} does not answer")
        if not line:
            sys.exit(f"tensorflow_step: {self.name} has ended; its words are above")
        return json.loads(line)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Side:
    """The ranks of one library."""

    def __init__(self, name: str, size: int) -> None:
        port = random.randrange(20000, 30000)
        workers = [f"localhost:{port + i}" for i in range(size)]
        shared = {
            "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "",
            "RUEDA_SIZE": str(size), "RUEDA_JOB": f"bench-tf-{os.getpid()}-{port}",
        }  # fmt: skip
        script = "torch_side.py" if name == "torch" else "tensorflow_side.py"
        self.ranks = []
        for rank in range(size):
            task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
            mine = {"BENCH_RANK": str(rank), "RUEDA_RANK": str(rank)}
            if name == "multiworker":
                mine["TF_CONFIG"] = json.dumps(task)
            self.ranks.append(
                Rank(script, "rueda" if name == "torch" else name, {**shared, **mine})
            )
        for one in self.ranks:
            one.answer()

    def turn(self, *words: Any) -> tuple[float, list[list]]:
        """The median of repetitions, in seconds, each of its slowest rank; and all answers."""
        for rank in self.ranks:
            rank.tell(*words)
        answers = [rank.answer() for rank in self.ranks]
        repetitions = zip(*(answer[0] for answer in answers))
        return statistics.median(map(max, repetitions)), answers

    def close(self) -> None:
        for rank in self.ranks:
            rank.close()


@contextlib.contextmanager
def sides_of(names: tuple[str, ...], size: int) -> Iterator[dict[str, Side]]:
    sides: dict[str, Side] = {}
    try:
        for name in names:
            sides[name] = Side(name, size)
        yield sides
    finally:
        for side in sides.values():
            side.close()


def ms(seconds: float) -> str:
    return f"{1000 * seconds:.3g}"


# ---- Steps ------------------------------------------------------------------


def rounds_of(sides: dict[str, Side], words: dict[str, tuple], count: int) -> list[dict]:
    """The figures of each round, in an order that changes; the first turn only warms up."""
    for name in sides:
        sides[name].turn(*words[name])
    found = []
    for _ in range(count):
        order = random.sample(list(sides), len(sides))
        found.append({name: sides[name].turn(*words[name]) for name in order})
    return found


def check_losses(model: str, last: dict[str, tuple[float, list[list]]]) -> None:
    losses = {name: [answer[1] for answer in last[name][1]] for name in CONNECTED}
    for name, mine in losses.items():
        for one, other in zip(mine, losses["multiworker"]):
            if abs(one - other) > LOSS_DIFFERENCE * max(abs(other), 1e-3):
                sys.exit(f"tensorflow_step: {model}: losses differ: {name} {mine}, {losses}")


def steps(options: argparse.Namespace) -> None:
    print(f"Training steps, {options.ranks} ranks, {options.rounds} rounds; milliseconds:\n")
    print("| model | not connected | MultiWorkerMirrored | tape | strategy "
          "| overhead of the tape / of MultiWorkerMirrored | of the strategy |")  # fmt: skip
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for model in options.models.split(","):
        names = ("none", *CONNECTED, *(["torch"] if model == "many" else []))
        with sides_of(names, options.ranks) as sides:
            count = {"mlp": 6, "conv": 12, "many": 12}[model]
            words = {name: ("train", model, count) for name in names}
            words["torch"] = ("spread", model, count)
            found = rounds_of(sides, words, options.rounds)
        check_losses(model, found[-1])

        def over(one: dict, name: str) -> float:
            return one[name][0] - one["none"][0]

        times = {n: statistics.median(one[n][0] for one in found) for n in names}
        base = statistics.median(over(one, "multiworker") for one in found)
        ratios = [
            statistics.median(over(one, name) for one in found) / base
            for name in ("rueda", "strategy")
        ]
        cells = [ms(times[name]) for name in ("none", *CONNECTED)]
        print(f"| {model} | {' | '.join(cells)} | {ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True)
        if model == "many":
            ratio = statistics.median(one["rueda"][0] / one["torch"][0] for one in found)
            note = f"many: rueda.torch takes {ms(times['torch'])} ms; the tape {ratio:.2f} of it"
    print("\nThe losses of all connected sides agree.")
    if "many" in options.models.split(","):
        print(note)


# ---- One op, and the start --------------------------------------------------


def op(options: argparse.Namespace) -> None:
    length, count = 4096, 300
    with sides_of(("rueda", "torch"), options.ranks) as sides:
        words = {"rueda": ("sum", length, count), "torch": ("allreduce", length, count)}
        found = rounds_of(sides, words, options.rounds)
    identities = [
        statistics.median(map(max, zip(*(answer[1] for answer in one["rueda"][1]))))
        for one in found
    ]
    ratios = [(one["rueda"][0] - same) / one["torch"][0] for one, same in zip(found, identities)]
    op_us, torch_us = (
        1e6 * statistics.median(one[name][0] for one in found) for name in ("rueda", "torch")
    )
    print(f"\nAn allreduce of {length} bytes, {options.rounds} rounds of {count}:\n")
    print("| in a tf.function, us | identity in its place, us | rueda.torch by name, us "
          "| (op - identity) / rueda.torch |")  # fmt: skip
    print("|---:|---:|---:|---:|")
    print(f"| {op_us:.0f} | {1e6 * statistics.median(identities):.0f} | {torch_us:.0f} "
          f"| {statistics.median(ratios):.2f} |", flush=True)  # fmt: skip


def start(options: argparse.Namespace) -> None:
    cpu, wall = [], []
    for _ in range(options.rounds):
        said = subprocess.run(
            [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        ).stdout  # fmt: skip
        times = [float(word) for word in said.split()[-2:]]
        cpu.append(times[0])
        wall.append(times[1])
    print(f"\nimport rueda.tensorflow adds {ms(statistics.median(wall))} ms "
          f"({ms(statistics.median(cpu))} ms of CPU) to that of TensorFlow.")  # fmt: skip
    for wheel in (ROOT / "dist").glob("*.whl"):
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--models", default="mlp,conv,many")
    parser.add_argument("--only", default="steps,op,start")
    options = parser.parse_args()
    parts = {"steps": steps, "op": op, "start": start}
    for name in options.only.split(","):
        parts[name](options)


if __name__ == "__main__":
    main()
