# SPDX-License-Identifier: Apache-2.0
"""Jobs in plain shells that have no name of their own do not take each other's ranks."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ranks import environment, program

LIMIT_S = 120.0

Process = subprocess.Popen[str]


def start(folder: Path, name: str, rank: int, number: int, size: int = 2, **more: str) -> Process:
    """A rank of a job; its program has this name, which is part of the job's."""
    folder.mkdir(exist_ok=True)
    if not (folder / name).exists():  # an earlier rank may just be reading it
        shutil.copy(program("add_and_stay.py"), folder / name)
    return subprocess.Popen(
        [sys.executable, name, str(number)],
        cwd=folder,
        env=environment(RUEDA_RANK=str(rank), RUEDA_SIZE=str(size), **more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(processes: list[Process]) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each; none may hang."""
    deadline = time.monotonic() + LIMIT_S
    done = []
    try:
        for process in processes:
            out, err = process.communicate("", timeout=max(deadline - time.monotonic(), 0.1))
            done.append((process.returncode, out, err))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return done


def check_sums(processes: list[Process], sums: list[int]) -> None:
    done = finish(processes)
    assert [code for code, _, _ in done] == [0] * len(done), done
    assert [int(out) for _, out, _ in done] == sums


@pytest.mark.parametrize("turn", range(3))
def test_jobs_of_two_programs_do_not_cross(tmp_path: Path, turn: int) -> None:
    orders = [(0, 1), (1, 0)][turn % 2]
    ranks = [
        start(tmp_path, f"{name}.py", rank, number)
        for rank in orders
        for name, number in (("one", 1), ("ten", 10))
    ]
    check_sums(ranks, [2, 20, 2, 20])


def test_jobs_of_two_folders_do_not_cross(tmp_path: Path) -> None:
    ranks = [
        start(tmp_path / name, "same.py", rank, number)
        for rank in (1, 0)
        for name, number in (("one", 1), ("ten", 10))
    ]
    check_sums(ranks, [2, 20, 2, 20])


def test_jobs_with_names_of_their_own_do_not_cross(tmp_path: Path) -> None:
    job = tmp_path.name
    ranks = [
        start(tmp_path, "same.py", rank, number, RUEDA_JOB=f"{job}-{number}")
        for rank in (0, 1)
        for number in (1, 10)
    ]
    check_sums(ranks, [2, 20, 2, 20])


def test_a_name_joins_ranks_of_several_folders_and_programs(tmp_path: Path) -> None:
    ranks = [
        start(tmp_path / f"folder{rank}", f"program{rank}.py", rank, 1, RUEDA_JOB=tmp_path.name)
        for rank in (0, 1)
    ]
    check_sums(ranks, [2, 2])


def test_two_ranks_0_that_start_at_once_both_end(tmp_path: Path) -> None:
    for code, out, err in finish([start(tmp_path, "same.py", 0, number) for number in (1, 10)]):
        assert code != 0
        assert out == ""
        assert "two processes say that they are rank 0" in err
        assert "set another RUEDA_JOB" in err


def test_two_ranks_1_that_start_at_once_both_end(tmp_path: Path) -> None:
    ranks = [start(tmp_path, "same.py", rank, 1, size=3) for rank in (0, 1, 1)]
    for code, out, err in finish(ranks):
        assert code != 0
        assert out == ""
        assert "two processes say that they are rank 1" in err
        assert "set another RUEDA_JOB" in err


def test_a_second_rank_0_is_refused_while_the_first_job_runs(tmp_path: Path) -> None:
    first = [start(tmp_path, "same.py", rank, 1) for rank in (0, 1)]
    try:
        assert first[0].stdout is not None
        assert first[0].stdout.readline() == "2\n"
        ((code, out, err),) = finish([start(tmp_path, "same.py", 0, 10)])
        assert code != 0
        assert out == ""
        assert "runs already" in err
        assert "set another RUEDA_JOB" in err
        # Another program is not the same job.
        others = [start(tmp_path, "other.py", rank, 10) for rank in (0, 1)]
        check_sums(others, [20, 20])
    finally:
        done = finish(first)
    assert [code for code, _, _ in done] == [0, 0], done
    # And when it has ended there is room for the next.
    check_sums([start(tmp_path, "same.py", rank, 10) for rank in (0, 1)], [20, 20])
