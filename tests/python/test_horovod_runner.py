# SPDX-License-Identifier: Apache-2.0
"""What scripts and test suites import from horovod.runner."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import horovod
import pytest
from horovod.runner import _HorovodArgs
from horovod.runner.common.util.env import get_env_rank_and_size
from horovod.runner.launch import _run, _words
from horovod.runner.util.threads import execute_function_multithreaded, in_thread, on_event
from ranks import environment

LIMIT_S = 60


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)


def test_run_is_that_of_the_runner() -> None:
    assert horovod.run is horovod.runner.run


def test_the_command_line_is_horovodrun() -> None:
    code = "import horovod.runner.launch as launch; launch.run_commandline()"
    done = subprocess.run(
        [sys.executable, "-c", code, "-np", "2", "echo", "hello"], capture_output=True, text=True,
        timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0]<stdout>:hello", "[1]<stdout>:hello"]


def test_arguments_become_options() -> None:
    args = _HorovodArgs()
    args.num_proc = 3
    args.hosts = "a:2,b:1"
    args.nics = ["eth0", "eth1"]
    args.cooldown_range = (1, 9)
    args.verbose = 2
    args.use_gloo = False
    args.hierarchical_allreduce = False
    args.cycle_time_ms = 2.5
    assert _words(args) == [
        "--num-proc", "3", "--hosts", "a:2,b:1", "--verbose",
        "--network-interfaces", "eth0,eth1", "--cycle-time-ms", "2.5",
        "--no-hierarchical-allreduce", "--blacklist-cooldown-range", "1", "9",
    ]  # fmt: skip
    with pytest.raises(AttributeError):
        args.no_such_thing  # noqa: B018


def test_a_command_runs_by_its_arguments(capfd) -> None:
    args = _HorovodArgs()
    args.num_proc = 2
    args.command = ["sh", "-c", "echo $HOROVOD_RANK"]
    assert _run(args) is None
    assert sorted(capfd.readouterr().out.splitlines()) == ["[0]<stdout>:0", "[1]<stdout>:1"]
    args.command = ["sh", "-c", "exit 3"]
    with pytest.raises(RuntimeError, match="Horovod detected that one or more processes exited"):
        _run(args)


def test_rank_and_size_are_those_of_the_launcher(monkeypatch) -> None:
    assert get_env_rank_and_size() == (0, 1)
    monkeypatch.setenv("PMI_RANK", "1")
    with pytest.raises(RuntimeError, match="PMI_RANK is set, and PMI_SIZE is not"):
        get_env_rank_and_size()
    monkeypatch.setenv("PMI_SIZE", "3")
    assert get_env_rank_and_size() == (1, 3)
    monkeypatch.setenv("HOROVOD_RANK", "2")
    monkeypatch.setenv("HOROVOD_SIZE", "4")
    assert get_env_rank_and_size() == (2, 4)


def test_a_function_runs_in_a_thread() -> None:
    seen: list = []
    in_thread(seen.append, (1,)).join(LIMIT_S)
    in_thread(seen.index, ("no such",), silent=True).join(LIMIT_S)
    assert seen == [1]
    with pytest.raises(ValueError, match="args must be a tuple"):
        in_thread(seen.append, 1)


def test_a_function_waits_for_an_event() -> None:
    event, stop, seen = threading.Event(), threading.Event(), []
    thread = on_event(event, seen.append, (1,))
    stopped = on_event(threading.Event(), seen.append, (2,), stop, 0.01, daemon=False)
    assert seen == []
    event.set()
    stop.set()
    thread.join(LIMIT_S)
    stopped.join(LIMIT_S)
    assert not stopped.is_alive()
    assert seen == [1]


def test_functions_run_on_several_threads() -> None:
    calls = [[number, 2] for number in range(20)]
    answers = execute_function_multithreaded(pow, calls, max_concurrent_executions=3)
    assert answers == {number: number**2 for number in range(20)}


@pytest.mark.parametrize(
    ("name", "more", "wanted"),
    [("rueda", {}, None), ("horovod", {}, "0"), ("horovod", {"RUEDA_STALL_GIVE_UP": "5m"}, "5m")],
)
def test_under_this_name_no_stall_ends_a_job_unasked(
    name: str, more: dict[str, str], wanted: str | None
) -> None:
    code = f"import {name}, os; print(os.environ.get('RUEDA_STALL_GIVE_UP'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(**more), capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert done.stdout == f"{wanted}\n", done.stderr
