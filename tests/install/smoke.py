# SPDX-License-Identifier: Apache-2.0
"""Use the installed wheel as a user's first minute does; tools/smoke runs it.

Any Python will do that has the package, and nothing else is needed: no framework,
no pytest. A C compiler is used if there is one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import rueda

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIMIT_S = 60


def output_of(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL)  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def check(is_so: bool, what: str) -> None:
    if not is_so:
        raise SystemExit(f"not so: {what}")


def place(more: int) -> tuple[int, int, int]:
    return int(os.environ["RUEDA_RANK"]), int(os.environ["RUEDA_SIZE"]), more


def check_package() -> None:
    check(Path(rueda.__file__).is_relative_to(sys.prefix), "rueda is that of this environment")
    check(metadata.version("rueda") == rueda.__version__, "package and library are of one version")
    import horovod

    check(horovod.run is not None, "horovod is there, too")


def check_programs() -> None:
    for program in ("rueda", "ruedarun", "horovodrun"):
        path = shutil.which(program)
        check(path is not None and path.startswith(sys.prefix), f"{program} is installed")
    check(rueda.__version__ in output_of("rueda", "--version"), "rueda says the same version")
    table = output_of("rueda", "bench", "allreduce", "--np", "2", "--min", "8", "--max", "8")
    check("8" in table, "rueda bench gives a table")


def check_ranks() -> None:
    hello = str(EXAMPLES / "python" / "hello.py")
    lines = sorted(output_of("ruedarun", "-np", "2", sys.executable, hello).splitlines())
    wanted = [f"[{rank}]<stdout>:rank {rank} of 2: the sum is 3" for rank in range(2)]
    check(lines == wanted, f"two ranks add up: {lines}")
    answers = rueda.run(place, (7,), np=2)
    check(answers == [(0, 2, 7), (1, 2, 7)], f"rueda.run() brings results: {answers}")
    # A local function, which cloudpickle sends.
    answers = rueda.run(lambda: place(8), np=1)
    check(answers == [(0, 1, 8)], f"rueda.run() sends local functions: {answers}")


def check_c() -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        print("no C compiler, so no program in C")
        return
    with tempfile.TemporaryDirectory() as folder:
        program, library = f"{folder}/hello", rueda.get_library()
        output_of(compiler, str(EXAMPLES / "c" / "hello_allreduce.c"), "-o", program,
                  f"-I{rueda.get_include()}", library,
                  f"-Wl,-rpath,{os.path.dirname(library)}")  # fmt: skip
        answer = output_of(program)
    check(answer == "rank 0 of 1: the sum is 1\n", f"a program in C runs: {answer}")


if __name__ == "__main__":
    for step in (check_package, check_programs, check_ranks, check_c):
        step()
