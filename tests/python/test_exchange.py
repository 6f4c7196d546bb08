# SPDX-License-Identifier: Apache-2.0
"""A card goes from rank 0 to all, through launchers that are not ours.

Ranks are tests/multi/exchange_main.c; each prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable

import pytest
from slurm import Slurm

LIMIT_S = 60
RANKS = 4
OK, TIMEOUT, MISMATCH, PEER_LOST, UNSUPPORTED = 0, -3, -4, -5, -11

# The launcher, and the exchange that it offers.
OPENMPI = ("openmpi", "pmix")
HYDRA = ("hydra", "pmi1")
SLURM_PMIX = ("srun --mpi=pmix", "pmix")
SLURM_PMI2 = ("srun --mpi=pmi2", "pmi2")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def program(source_root: Path) -> str:
    path = source_root / "build" / "release" / "tests" / "exchange_main"
    if not path.exists():
        pytest.skip(f"missing tool: {path.name}")
    return str(path)


@pytest.fixture
def launch(need_tool, request: pytest.FixtureRequest, program: str) -> Run:
    """A function that runs the program with these words under a launcher."""

    def run(launcher: str, words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        if launcher.startswith("srun"):
            slurm: Slurm = request.getfixturevalue("slurm")
            options = launcher.split()[1:]
            return slurm.run(
                [*options, "-n", str(RANKS), program, *words.split()], LIMIT_S, **environment
            )
        # By name: Open MPI takes a whole path for a wish about other hosts.
        command = ["mpirun.openmpi" if launcher == "openmpi" else "mpiexec.hydra"]
        need_tool(command[0])
        if launcher == "openmpi":
            command.append("--oversubscribe")
        if launcher == "openmpi" and os.geteuid() == 0:
            command.append("--allow-run-as-root")
        return subprocess.run(
            [*command, "-n", str(RANKS), program, *words.split()],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env={**os.environ, **environment},
        )

    return run


def reports_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """What the ranks said, in their order."""
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return sorted(lines, key=lambda report: report["rank"])


def pattern(count: int) -> str:
    return bytes((i * 7 + i // 256) % 256 for i in range(count)).hex()


# ---- Good ends --------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 64, 512])
@pytest.mark.parametrize(
    ("launcher", "way"),
    [
        OPENMPI,
        HYDRA,
        ("hydra", "pmi2"),
        SLURM_PMIX,
        SLURM_PMI2,
        ("srun --mpi=pmi2", "pmi1"),
    ],
)
def test_every_rank_gets_the_card(launch: Run, launcher: str, way: str, count: int) -> None:
    done = launch(launcher, f"{way} {count} 30000")
    reports = reports_of(done)
    assert done.returncode == 0, done.stderr
    assert [report["rank"] for report in reports] == list(range(RANKS)), done.stderr
    assert [report["error"] for report in reports] == [""] * RANKS
    assert [report["card"] for report in reports] == [pattern(count)] * RANKS
    assert done.stderr == ""


@pytest.mark.parametrize(("launcher", "way"), [OPENMPI, HYDRA, SLURM_PMIX, SLURM_PMI2])
def test_an_exchange_leaves_the_process_as_it_was(launch: Run, launcher: str, way: str) -> None:
    reports = reports_of(launch(launcher, f"{way} 64 30000"))
    assert len(reports) == RANKS
    for report in reports:
        assert report["threads"] == 0
        assert report["descriptors"] == 0
        assert report["handlers"] == 0
        assert report["child"] == 7


# ---- Bad ends ---------------------------------------------------------------


@pytest.mark.parametrize(("launcher", "way"), [OPENMPI, HYDRA, SLURM_PMIX, SLURM_PMI2])
def test_without_one_rank_the_others_give_up_in_time(launch: Run, launcher: str, way: str) -> None:
    reports = reports_of(launch(launcher, f"{way} 64 2000 1"))
    assert [report["rank"] for report in reports] == [0, 2, 3]
    for report in reports:
        assert report["status"] == TIMEOUT
        assert "not all ranks came" in report["error"]
        assert 1000 < report["ms"] < 4000
        assert report["threads"] == 0
        assert report["child"] == 7


@pytest.mark.parametrize("way", ["pmix", "pmi1", "pmi2"])
def test_without_a_launcher_that_is_said(program: str, way: str) -> None:
    done = subprocess.run(
        [program, way, "64", "30000"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={"PMI_RANK": "0", "PMI_SIZE": "2"},
    )
    (report,) = reports_of(done)
    assert report["status"] == UNSUPPORTED
    assert "not started by a launcher that" in report["error"]


def test_a_rank_under_a_wrong_number_is_told(launch: Run) -> None:
    done = launch("srun --mpi=pmi2", "pmi2 64 30000", OMPI_COMM_WORLD_RANK="9")
    reports = reports_of(done)
    assert len(reports) == RANKS, done.stderr
    for report in reports:
        assert report["status"] == MISMATCH
        assert "the settings say rank 9" in report["error"]


@contextmanager
def pmix_environment(*, accepts: bool) -> Iterator[dict[str, str]]:
    """The variables of a launcher that is stopped, or that has gone."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if accepts:
            listener.listen()
        address = f"100.0;tcp4://127.0.0.1:{listener.getsockname()[1]}"
        yield {
            "PMI_RANK": "0",
            "PMI_SIZE": "2",
            "PMIX_NAMESPACE": "101",
            "PMIX_RANK": "0",
            "PMIX_SECURITY_MODE": "native",
            "PMIX_GDS_MODULE": "hash",
            "PMIX_VERSION": "4.2.2",
            **{f"PMIX_SERVER_URI{version}": address for version in ("2", "21", "3", "4", "41")},
        }


@pytest.mark.parametrize(
    ("accepts", "status", "words"),
    [(True, TIMEOUT, "did not answer"), (False, PEER_LOST, "PMIx_Init failed")],
)
def test_a_dead_pmix_launcher_is_not_waited_for(
    need_tool, program: str, accepts: bool, status: int, words: str
) -> None:
    need_tool("mpirun.openmpi")  # brings libpmix
    with pmix_environment(accepts=accepts) as environment:
        done = subprocess.run(
            [program, "pmix", "64", "1000"],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=environment,
        )
    (report,) = reports_of(done)
    assert report["status"] == status
    assert words in report["error"]
    assert report["ms"] < 3000
