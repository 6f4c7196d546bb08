# SPDX-License-Identifier: Apache-2.0
"""MPI and Rueda in one process, under the launcher of that MPI.

Ranks are tests/multi/mpi_main.c.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Callable

import pytest
from slurm import Slurm

LIMIT_S = 60

# The launcher, and the MPI library that Debian brings with it.
MPI = {"mpirun.openmpi": "libmpi.so.40", "mpirun.mpich": "libmpich.so.12"}

Run = Callable[..., subprocess.CompletedProcess[str]]


MORE = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "RUEDA_START_TIMEOUT": "20s",
    "RUEDA_LOG_LEVEL": "info",
}


@pytest.fixture(scope="session")
def program(source_root: Path) -> str:
    path = source_root / "build" / "release" / "tests" / "mpi_main"
    if not path.exists():
        pytest.skip(f"missing tool: {path.name}")
    return str(path)


@pytest.fixture
def launch(need_tool: Callable[[str], str], program: str) -> Run:
    """A function that runs two ranks of the program under a launcher."""

    def run(
        launcher: str, *words: str, before: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        # By name: Open MPI takes a whole path for a wish about other hosts.
        need_tool(launcher)
        return subprocess.run(
            [launcher, "-n", "2", *before, program, MPI[launcher], *words],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env={**os.environ, **MORE},
        )

    return run


def check(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    said = sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))
    assert said == ["rank 0 of 2: 3", "rank 1 of 2: 3"]
    assert done.stderr.count("an MPI library is loaded in this process") == 2, done.stderr


@pytest.mark.parametrize("order", ["mpi-first", "rueda-first"])
@pytest.mark.parametrize("symbols", ["global", "local"])
@pytest.mark.parametrize("launcher", list(MPI))
def test_mpi_and_rueda_share_a_process(
    launch: Run, launcher: str, symbols: str, order: str
) -> None:
    check(launch(launcher, symbols, order))


@pytest.mark.parametrize("launcher", list(MPI))
def test_a_shell_between_launcher_and_rank_is_no_hindrance(launch: Run, launcher: str) -> None:
    shell = ("sh", "-c", '"$@"; exit $?', "sh")
    check(launch(launcher, "global", "mpi-first", before=shell))


@pytest.mark.parametrize("order", ["mpi-first", "rueda-first"])
@pytest.mark.parametrize(
    ("way", "launcher"), [("pmix", "mpirun.openmpi"), ("pmi2", "mpirun.mpich")]
)
def test_mpi_and_rueda_share_a_process_of_srun(
    need_tool: Callable[[str], str],
    slurm: Slurm,
    program: str,
    way: str,
    launcher: str,
    order: str,
) -> None:
    need_tool(launcher)  # brings the library
    words = [f"--mpi={way}", "-n", "2", program, MPI[launcher], "global", order]
    check(slurm.run(words, LIMIT_S, **MORE))
