# SPDX-License-Identifier: Apache-2.0
"""Ranks that a test starts itself, each with a command and an environment."""

from __future__ import annotations

import os
import random
import re
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

Done = subprocess.CompletedProcess[str]

# What launchers leave behind; a rank that a test starts is to see only its own.
_LAUNCHERS = re.compile(
    r"(RUEDA|HOROVOD|TORCHELASTIC|OMPI|PMI|PMIX|HYD\w*|SLURM|GROUP|LOCAL|ROLE|MASTER)_"
    r"|(RANK|WORLD_SIZE|TF_CONFIG)$"
)


def environment(**more: str) -> dict[str, str]:
    """Ours without any launcher's, and with these variables."""
    mine = {name: value for name, value in os.environ.items() if not _LAUNCHERS.match(name)}
    # torch complains if there is no numpy, torchrun if the number is not given.
    return {**mine, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1", **more}


def program(name: str) -> str:
    """The path of a program in tests/python/programs."""
    return str(Path(__file__).parent / "programs" / name)


def free_port() -> int:
    """A free port, below those that connections are given."""
    while True:
        port = random.randrange(10000, 20000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def check_way(way: str, log: str, ranks: int = 1) -> None:
    """This many ranks have joined a job, at level info, whose messages go this way."""
    said = re.findall(r"joined job .*; messages go by (.*)$", log, re.MULTILINE)
    assert said == [way] * ranks, log


def run_all(
    commands: Sequence[Sequence[str]],
    environments: Sequence[dict[str, str]],
    timeout_s: float,
) -> list[Done]:
    """Start all at once and wait for all; what is late is killed, and the test fails."""
    started = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=one
        )
        for command, one in zip(commands, environments)
    ]
    deadline = time.monotonic() + timeout_s
    done: list[Done] = []
    try:
        for process in started:
            left = max(deadline - time.monotonic(), 0.1)
            out, err = process.communicate(timeout=left)
            done.append(Done(process.args, process.returncode, out, err))
    finally:
        for process in started:
            process.kill()
            process.wait()
    return done
