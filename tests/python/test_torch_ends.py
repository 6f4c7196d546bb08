# SPDX-License-Identifier: Apache-2.0
"""Beginnings and ends of ranks in Python: launchers, exceptions, Ctrl-C, second names."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

import pytest
from ranks import Done, environment, program, run_all

pytest.importorskip("torch", reason="missing tool: torch")

LIMIT_S = 90
_jobs = itertools.count()


def by_hand(ranks: int, **more: str) -> list[dict[str, str]]:
    """The environments of ranks that no launcher starts."""
    job = f"ends-{os.getpid()}-{next(_jobs)}"
    return [
        environment(RUEDA_RANK=str(rank), RUEDA_SIZE=str(ranks), RUEDA_JOB=job, **more)
        for rank in range(ranks)
    ]


def run_ranks(ranks: int, name: str, *words: str) -> list[Done]:
    command = [sys.executable, program(name), *words]
    return run_all([command] * ranks, by_hand(ranks), LIMIT_S)


def run_python(*words: str, **more: str) -> Done:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=LIMIT_S,
        env=environment(**more),
    )  # fmt: skip


def run_program(name: str, *words: str, **more: str) -> Done:
    return run_python(program(name), *words, **more)


def test_a_process_without_a_launcher_is_a_job_of_one() -> None:
    done = run_program("torch_alone.py")
    assert done.stdout == "1 [1.0, 1.0]\n", done.stderr


@pytest.mark.parametrize("name", ["torch", "torch.mpi_ops", "common.exceptions", "common.util"])
def test_horovod_is_a_second_name_of_the_same_modules(name: str) -> None:
    done = run_program("torch_second_name.py", name)
    assert done.returncode == 0, done.stderr


def test_an_unknown_module_of_horovod_is_missing_under_its_own_name() -> None:
    done = run_python("-c", "import horovod.nothing")
    assert "No module named 'horovod.nothing'" in done.stderr


@pytest.mark.parametrize("more", ["", "\u00fc\u4e16" * 500], ids=["short", "long"])
def test_the_first_exception_is_told_to_all_ranks(more: str) -> None:
    for done in run_ranks(3, "torch_raise.py", more)[::2]:
        assert "rank 1" in done.stdout, done.stderr
        assert "the cat ate it'" in done.stdout
        assert more or "in feed" in done.stdout


def test_the_traceback_of_the_cause_comes_first(need_tool: Callable[[str], str]) -> None:
    command = [need_tool("ruedarun"), "-np", "2", sys.executable,
               program("torch_end_by_rank_1.py"), "raise"]  # fmt: skip
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S,
        env=environment(),
    )  # fmt: skip
    assert done.returncode != 0
    errors = [line for line in done.stdout.splitlines() if "Error: " in line]
    assert "KeyError: 'the cat ate it'" in errors[0], done.stdout


def test_the_exit_code_is_that_of_the_first_rank_to_end(need_tool: Callable[[str], str]) -> None:
    command = [need_tool("ruedarun"), "-np", "3", sys.executable,
               program("torch_end_by_rank_1.py"), "exit"]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, env=environment()
    )
    assert done.returncode == 7, done.stderr
    assert "rank 1 on localhost ended with exit code 7" in done.stderr


def test_a_rank_that_does_not_come_is_named() -> None:
    done = run_program("torch_alone.py", RUEDA_RANK="0", RUEDA_SIZE="2", RUEDA_JOB="lonely",
                       RUEDA_START_TIMEOUT="1s")  # fmt: skip
    assert "rank 1" in done.stdout, done.stdout + done.stderr


def test_rank_0_alone_starts_and_stops_timelines(tmp_path: Path) -> None:
    """Whatever the others call; what they do is in the files."""
    first, second, bad = (str(tmp_path / name) for name in ("1.json", "2.json", "no/3.json"))
    done = run_ranks(2, "torch_timelines.py", first, second, bad)
    for one in done:
        assert one.returncode == 0 and one.stdout.count("refused") == 2, one.stdout + one.stderr
    assert "cannot write the timeline to" in done[0].stdout, done[0].stdout + done[0].stderr
    assert "stopped" in done[0].stdout
    for path, name in ((first, "one"), (second, "two")):
        events = json.loads(Path(path).read_text())
        names = {event["pid"]: event["args"]["name"] for event in events
                 if event.get("name") == "process_name"}  # fmt: skip
        ends = {(names[event["pid"]], event.get("tid", 0)) for event in events
                if "dtype" in event.get("args", {})}  # fmt: skip
        assert ends == {(f"allreduce.{name}", 0), (f"allreduce.{name}", 1)}


def interrupted(name: str, word: str) -> str:
    """What rank 0 writes to its standard error after a Ctrl-C, when all have said "waiting"."""
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(
            [sys.executable, program(name), word], stdout=pipe, stderr=pipe, text=True, env=one
        )
        for one in by_hand(2)
    ]
    try:
        for process in started:
            assert process.stdout is not None and process.stdout.readline() == "waiting\n"
        time.sleep(0.5)
        started[0].send_signal(signal.SIGINT)
        return started[0].communicate(timeout=20)[1]
    finally:
        for process in started:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("wait", ["allreduce", "add_process_set"])
def test_ctrl_c_ends_a_wait(wait: str) -> None:
    assert "KeyboardInterrupt" in interrupted("torch_wait.py", wait)


@pytest.mark.parametrize("life", ["first", "again"])
def test_ctrl_c_ends_init(life: str) -> None:
    """Also of a second life, after which a shutdown() comes at exit."""
    assert "KeyboardInterrupt" in interrupted("torch_init.py", life)


def test_an_init_that_was_interrupted_can_be_called_again() -> None:
    for way in ("at once", "shutdown"):
        commands = [
            [sys.executable, program("torch_init_interrupted.py"), str(rank), way]
            for rank in (0, 1)
        ]
        for done in run_all(commands, by_hand(2), LIMIT_S):
            assert done.stdout == "2\n", done.stderr


@pytest.mark.parametrize("wait", ["allreduce", "add_process_set"])
def test_shutdown_ends_the_waits_of_other_threads(wait: str) -> None:
    first, second = run_ranks(2, "torch_shutdown.py", wait)
    assert first.returncode == 0 and "shut down" in first.stdout, first.stderr
    assert second.returncode == 0, second.stderr


def test_a_communicator_of_mpi4py_is_enough(tmp_path: Path) -> None:
    words = [sys.executable, program("torch_communicator.py")]
    commands = [[*words, str(rank), str(tmp_path / "x")] for rank in (0, 1)]
    for rank, done in enumerate(run_all(commands, [environment()] * 2, LIMIT_S)):
        assert done.stdout == f"{rank} 2 True tensor([0, 1])\n", done.stderr


def test_a_communicator_that_fails_says_why() -> None:
    done = run_program("torch_communicator.py", "1", "/nonexistent/none")
    assert "OSError: no wire" in done.stderr


@pytest.mark.parametrize("launcher", ["horovodrun", "torchrun", "mpirun"])
def test_launchers(launcher: str, need_tool: Callable[[str], str]) -> None:
    commands = {
        "horovodrun": lambda: [need_tool("horovodrun"), "-np", "2", sys.executable],
        "torchrun": lambda: [sys.executable, "-m", "torch.distributed.run",
                             "--nproc_per_node", "2", "--standalone"],
        "mpirun": lambda: [need_tool("mpirun.openmpi"), "--allow-run-as-root", "--oversubscribe",
                           "-np", "2", sys.executable],
    }  # fmt: skip
    done = subprocess.run(
        [*commands[launcher](), program("torch_sum.py")], capture_output=True, text=True,
        timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    assert done.stdout.count(f"3 {launcher == 'mpirun'}") == 2, done.stdout + done.stderr
