# SPDX-License-Identifier: Apache-2.0
"""How training scales on this machine, beside what `rueda sim` predicts.

    python examples/scaling/scaling.py --ranks 1,2,4 --plot scaling.svg

The model and the steps are those of examples/pytorch/synthetic_benchmark.py. For each
number of workers it measures two things: steps of as many workers that train together,
and steps of as many that know nothing of each other, which shows what they lose because
they share cores and memory. The second goes into the simulator, with the gradients and
the times of a recorded backward pass; its prediction stands beside the first in the
table and in the plot.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHMARK = HERE.parent / "pytorch" / "synthetic_benchmark.py"
LIMIT_S = 1800
RESULT = re.compile(r"workers: [\d.]+ pictures a second, ([\d.]+) each")

RECORD = """
import sys
sys.path[:0] = [{here!r}, {pytorch!r}]
import torch
import torch.nn.functional as F
from record_model import record
from synthetic_benchmark import CLASSES, MODELS

torch.set_num_threads(1)
net = MODELS[{model!r}]()
x, y = torch.randn({batch}, 3, {side}, {side}), torch.randint(CLASSES, ({batch},))
record({path!r}, net, lambda: F.cross_entropy(net(x), y), batch={batch}, steps={steps},
       name={model!r})
"""


def environment() -> dict[str, str]:
    """One thread for each worker, so that they do not fight for cores."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def finish(started: list[subprocess.Popen[str]]) -> list[str]:
    """What all of them print."""
    try:
        said = [one.communicate(timeout=LIMIT_S)[0] for one in started]
    finally:
        for one in started:
            one.kill()
            one.wait()
    for one in started:
        if one.returncode != 0:
            sys.exit(f"scaling: {' '.join(map(str, one.args))} failed; its words are above")
    return said


def start(words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment())


def step_ms(options: argparse.Namespace, said: list[str]) -> float:
    """Of the slowest worker that says how many pictures a second it trains on."""
    rates = [float(found.group(1)) for one in said if (found := RESULT.search(one)) is not None]
    if not rates:
        sys.exit(f"scaling: the benchmark says something else: {said}")
    return 1e3 * options.batch / min(rates)


def measure(options: argparse.Namespace, ranks: int) -> tuple[float, float]:
    """Milliseconds of a step of workers that are not connected, and of ones that are."""
    script = [sys.executable, str(BENCHMARK), "--model", options.model, "--batch",
              str(options.batch), "--side", str(options.side), "--steps", str(options.steps),
              "--turns", str(options.turns)]  # fmt: skip
    apart = step_ms(options, finish([start(script) for _ in range(ranks)]))
    together = step_ms(options, finish([start(["ruedarun", "-np", str(ranks), *script])]))
    print(f"{ranks} workers: {apart:.1f} ms a step apart, {together:.1f} ms together", flush=True)
    return apart, together


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", default="1,2,4", help="numbers of workers (%(default)s)")
    parser.add_argument("--model", default="resnet18", help="resnet18, 34, 50 (%(default)s)")
    parser.add_argument("--batch", type=int, default=8, help="of each worker (%(default)s)")
    parser.add_argument("--side", type=int, default=224, help="of a picture (%(default)s)")
    parser.add_argument("--steps", type=int, default=5, help="in a turn (%(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="each gives a figure (%(default)s)")
    parser.add_argument("--local", default="10GB/s,1us",
                        help="how fast a worker reads from others (%(default)s)")  # fmt: skip
    parser.add_argument("--plot", default="scaling.svg", help="(%(default)s)")
    parser.add_argument("--json", help="everything that was predicted and measured")
    return parser.parse_args()


def main() -> int:
    options = parse()
    ranks = sorted({int(word) for word in options.ranks.split(",")})
    with tempfile.TemporaryDirectory() as folder:
        model, measured = Path(folder) / "recorded.model", Path(folder) / "measured"
        record = RECORD.format(here=str(HERE), pytorch=str(BENCHMARK.parent), path=str(model),
                               model=options.model, batch=options.batch, side=options.side,
                               steps=options.steps)  # fmt: skip
        finish([start([sys.executable, "-c", record])])
        times = {number: measure(options, number) for number in ranks}
        measured.write_text("".join(f"{number} {both[1]}\n" for number, both in times.items()))
        compute = ",".join(f"{number}:{both[0]:.6f}" for number, both in times.items())
        words = ["rueda", "sim", "--model", str(model), "--ranks-per-host", str(ranks[-1]),
                 "--ranks", options.ranks, "--local", options.local, "--algo", "auto",
                 "--compute-ms", compute, "--measured", str(measured),
                 "--plot", options.plot]  # fmt: skip
        if options.json:
            words += ["--json", options.json]
        return subprocess.run(words, timeout=LIMIT_S).returncode


if __name__ == "__main__":
    sys.exit(main())
