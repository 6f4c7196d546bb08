# SPDX-License-Identifier: Apache-2.0
"""run(repair=True): where steps end in each framework, and what is refused.

RUEDA_REPAIR is set nowhere: the ranks turn it on, and ruedarun hears of it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Callable

import pytest
from ranks import Done, environment, program

LIMIT_S = 300
STEPS = 8


@pytest.fixture
def run(need_tool: Callable[[str], str]) -> Callable[..., Done]:
    """A function that runs a program on ranks of which some die."""
    launcher = need_tool("ruedarun")

    def call(name: str, way: str, deaths: dict[int, int], *options: str, **more: str) -> Done:
        words = [f"{rank}:{step}" for rank, step in deaths.items()]
        return subprocess.run(
            [launcher, *(options or ("-np", "3")), sys.executable, program(name), way, str(STEPS),
             *words],
            capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
            env=environment(**more),
        )  # fmt: skip

    return call


def masks_of(size: int, deaths: dict[int, int]) -> list[int]:
    """The sums of all steps, of the ranks that were left in each."""
    return [sum(1 << rank for rank in range(size) if deaths.get(rank, STEPS) > step)
            for step in range(STEPS)]  # fmt: skip


@pytest.mark.parametrize("end", ["step", "commit"])
def test_others_go_on_inside_the_step(run, end: str) -> None:
    pytest.importorskip("torch", reason="missing tool: torch")
    deaths = {0: 5}
    done = run("repair_by_run.py", end, deaths)
    assert done.returncode == 0, done.stderr
    assert "the others go on without it" in done.stderr
    lines = sorted(re.findall(r"was (\d) is (\d) of (\d) calls (\d) got (\S+)", done.stdout))
    assert [line[0] for line in lines] == ["1", "2"], done.stdout
    assert {line[1] for line in lines} == {"0", "1"}
    assert {(line[2], line[3]) for line in lines} == {("2", "1")}
    assert {line[4] for line in lines} == {",".join(map(str, masks_of(3, deaths)))}


def test_without_an_end_of_a_step_repair_is_refused_with_words(run) -> None:
    pytest.importorskip("torch", reason="missing tool: torch")
    done = run("repair_by_run.py", "none", {1: 5})
    assert done.returncode != 0
    assert "rueda_step()" in done.stderr
    assert "so that the number of ranks could change nowhere" in done.stderr


def test_what_repair_refuses_is_started_again(run) -> None:
    pytest.importorskip("torch", reason="missing tool: torch")
    done = run("repair_by_run.py", "none", {1: 5}, "-np", "2", "--restarts", "1")
    assert done.returncode == 0, done.stderr
    assert "could change nowhere" in done.stderr
    assert "restart 1 of 1" in done.stderr
    assert len(re.findall(r"of 2 calls 1 got 3,3,3,3,3,3,3,3\b", done.stdout)) == 2


def test_in_an_elastic_job_repair_is_refused_with_words(run) -> None:
    pytest.importorskip("torch", reason="missing tool: torch")
    done = run("repair_by_run.py", "commit", {1: 5}, "-np", "3", "--min-np", "2", "-H",
               "localhost:3")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("they do not repair it: after a death all go back") == 1
    lines = re.findall(r"of (\d) calls (\d) got (\S+)", done.stdout)
    assert [line[:2] for line in lines] == [("2", "2")] * 2
    assert lines[0][2].count(",") == STEPS - 1


def check_line(done: Done) -> None:
    assert done.returncode == 0, done.stderr
    lines = sorted(re.findall(r"was (\d) is (\d) of (\d) calls (\d) right (\w+)", done.stdout))
    assert [(line[0], *line[2:]) for line in lines] == [
        ("0", "2", "1", "True"), ("2", "2", "1", "True"),
    ], done.stdout  # fmt: skip


def test_others_go_on_in_a_loop_with_a_tape(run) -> None:
    pytest.importorskip("tensorflow", reason="missing tool: tensorflow")
    check_line(run("repair_line.py", "tape", {1: 4}, TF_CPP_MIN_LOG_LEVEL="3"))


@pytest.mark.parametrize(
    ("back_end", "way"), [("tensorflow", "commit"), ("torch", "batch"), ("jax", "batch")]
)
def test_others_go_on_in_fit(run, back_end: str, way: str) -> None:
    pytest.importorskip("keras", reason="missing tool: keras")
    pytest.importorskip(back_end, reason=f"missing tool: {back_end}")
    check_line(run("repair_line.py", way, {1: 4}, KERAS_BACKEND=back_end,
                   TF_CPP_MIN_LOG_LEVEL="3"))  # fmt: skip
