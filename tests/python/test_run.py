# SPDX-License-Identifier: Apache-2.0
"""rueda.run() and horovod.run(): results, exceptions, and that nothing is left."""

from __future__ import annotations

import gc
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import horovod
import pytest
import rueda
from ranks import environment, program
from rueda.runner import RankError
from test_ruedarun import LIMIT_S, is_alive, read_ids, wait_until
from test_ruedarun_hosts import make_cluster  # noqa: F401 -- a fixture


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def place(*more: object) -> tuple:
    return (int(os.environ["RUEDA_RANK"]), int(os.environ["RUEDA_SIZE"]), *more)


# ---- Results -------------------------------------------------------------------


def test_results_are_in_the_order_of_the_ranks() -> None:
    def late(first: int, last: int = 0) -> tuple:
        time.sleep(0.3 if place()[0] == 0 else 0)
        return place(first, last)

    # A local function, which takes cloudpickle.
    assert rueda.run(late, (7,), {"last": 9}, np=3) == [(rank, 3, 7, 9) for rank in range(3)]


def test_two_ranks_unless_another_number_is_given() -> None:
    assert rueda.run(place) == [(0, 2), (1, 2)]
    assert horovod.run(place) == [(0, 1)]


def test_a_function_of_a_module_travels_without_cloudpickle(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    assert rueda.run(place, ("x",), np=1) == [(0, 1, "x")]


def test_what_is_missing_for_a_local_function_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(TypeError, match="pip install cloudpickle"):
        rueda.run(lambda: 1, np=1)


def test_results_may_be_large() -> None:
    (answer,) = rueda.run(bytes, (50_000_000,), np=1)
    assert answer == bytes(50_000_000)


def test_the_environment_of_ranks_has_what_is_asked_for_and_no_key() -> None:
    def look() -> tuple:
        return os.environ.get("COLOUR"), "RUEDA_RUN" in os.environ

    assert rueda.run(look, np=2, env={"COLOUR": "red"}) == [("red", False)] * 2


def test_options_are_those_of_ruedarun(capfd, tmp_path: Path) -> None:
    def say() -> None:
        print("good evening")

    rueda.run(say, np=2, output_filename=str(tmp_path), cache_capacity=7, grace=1.5)
    text = (tmp_path / "rank.1" / "stdout").read_text()
    assert text == "[1]<stdout>:good evening\n"
    assert "[0]<stdout>:good evening\n" in capfd.readouterr().out


def test_what_ranks_print_reaches_a_stream_without_a_file(monkeypatch) -> None:
    """As in a notebook, whose stream has the number of the server's terminal."""
    written: list[str] = []

    class Cell:
        def fileno(self) -> int:
            return 2

        def write(self, text: str) -> None:
            written.append(text)

        def flush(self) -> None:
            pass

    monkeypatch.setattr(sys, "stdout", Cell())
    rueda.run(print, ("hello",), np=1)
    assert "".join(written) == "[0]<stdout>:hello\n"


def test_nothing_is_left_open() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        rueda.run(place)
        gc.collect()
    assert not told, told[0].message


def test_several_runs_at_a_time() -> None:
    answers: dict[int, list] = {}

    def call(number: int) -> None:
        answers[number] = rueda.run(place, (number,), np=2)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert answers == {number: [(0, 2, number), (1, 2, number)] for number in range(3)}


# ---- Failures ------------------------------------------------------------------


def fail_on_one() -> None:
    if place()[0] == 1:
        raise KeyError("no such step")
    time.sleep(120)


def test_the_exception_of_a_rank_is_raised_with_its_traceback(capfd) -> None:
    with pytest.raises(KeyError, match="no such step") as caught:
        rueda.run(fail_on_one, np=3)
    cause = type(caught.value.__cause__)
    assert f"{cause.__module__}.{cause.__qualname__}" == "rueda.RankTraceback"
    words = str(caught.value.__cause__)
    assert words.startswith("on rank 1\n")
    assert 'raise KeyError("no such step")' in words
    shown = capfd.readouterr().err
    assert "[1]<stderr>:KeyError: 'no such step'\n" in shown
    assert "in fail_on_one\n" in shown
    assert "runpy" not in shown and "task.py" not in shown  # the function's frames alone


def test_the_first_exception_counts() -> None:
    """A rank that fails because another has failed before is not blamed."""

    def fail_one_after_another() -> None:
        rank = place()[0]
        time.sleep(0.5 * (2 - rank))
        raise LookupError(rank)

    with pytest.raises(LookupError) as caught:
        rueda.run(fail_one_after_another, np=3, grace=5)
    assert caught.value.args == (2,)


def test_an_exception_that_cannot_travel_is_told() -> None:
    class Odd(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__("odd")

    def fail() -> None:
        raise Odd(1, 2)

    with pytest.raises(RankError, match="rank 0 raised Odd") as caught:
        rueda.run(fail, np=1)
    assert "raise Odd(1, 2)" in str(caught.value.__cause__)
    assert caught.value.rank == 0


def test_a_result_that_cannot_travel_is_an_error_of_its_rank() -> None:
    with pytest.raises(TypeError, match="pickle"):
        rueda.run(threading.Lock, np=1)


@pytest.mark.parametrize("code", [0, 3])
def test_an_exit_is_no_result(code: int) -> None:
    with pytest.raises(RankError, match="rank 0 raised SystemExit"):
        rueda.run(sys.exit, (code,), np=1)


def test_a_killed_rank_is_named() -> None:
    def die() -> None:
        if place()[0] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(120)

    with pytest.raises(RankError, match=r"rank 1 on .*\(SIGKILL\)") as caught:
        rueda.run(die, np=2)
    assert caught.value.code == 137


@pytest.mark.parametrize("code", [0, 2])
def test_a_rank_that_just_ends_has_no_result(code: int) -> None:
    with pytest.raises(RankError):
        rueda.run(os._exit, (code,), np=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"np": 0}, "--num-proc"), ({"np": "2"}, "not '2'"), ({"np": 2.0}, "not 2.0"),
     ({"colour": "red"}, "--colour"), ({"hosts": "a:b"}, "'b' slots"),
     ({"min_np": 3}, "--min-np")],
)  # fmt: skip
def test_options_that_cannot_be_are_refused(options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rueda.run(place, **options)


# ---- Elastic jobs --------------------------------------------------------------


def count_to(steps: int, at: int, event: str) -> tuple[int, int, int]:
    """Steps of an elastic job; in one of them, in the first term, something happens."""
    import rueda.elastic
    from rueda.common.basics import basics
    from rueda.common.objects import allgather_object

    basics.init()
    first = basics.rank()

    @rueda.elastic.run
    def count(state: rueda.elastic.ObjectState) -> None:
        begun = state.step
        while state.step < steps:
            if begun == 0 and state.step == at:
                if event == "kill" and first == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                if event == "raise":
                    raise OSError(f"rank {first} has no more")
                if first == 0 and event.startswith("/"):
                    Path(event).write_text("localhost:1\n")
            time.sleep(0.05)
            assert len(allgather_object(state.step)) == basics.size()
            state.step += 1
            state.commit()

    state = rueda.elastic.ObjectState(step=0)
    count(state)
    return basics.rank(), basics.size(), state.step


def test_an_elastic_job_returns_what_is_left() -> None:
    answers = rueda.run(count_to, (12, 4, "kill"), np=3, min_np=2, hosts="localhost:3")
    assert answers == [(0, 2, 12), (1, 2, 12)]


def test_horovod_has_elastic_jobs_too() -> None:
    hosts = "localhost:2,127.0.0.1:1"
    answers = horovod.run(count_to, (8, -1, ""), num_proc=3, min_num_proc=2, hosts=hosts)
    assert answers == [(0, 3, 8), (1, 3, 8)]


def test_a_process_that_the_script_names_no_more_leaves_without_a_result(tmp_path: Path) -> None:
    hosts, script = tmp_path / "hosts", tmp_path / "script"
    hosts.write_text("localhost:1\n127.0.0.1:1\n")
    script.write_text(f"#!/bin/sh\ncat {hosts}\n")
    script.chmod(0o755)
    answers = rueda.run(
        count_to, (100, 5, str(hosts)), np=2, min_np=1, host_discovery_script=str(script)
    )
    assert answers == [(0, 1, 100)]


def test_an_elastic_job_in_which_all_fail_raises_what_they_raised() -> None:
    with pytest.raises(OSError, match="has no more"):
        rueda.run(count_to, (8, 3, "raise"), np=2, min_np=1, hosts="localhost:2")


# ---- Horovod's -----------------------------------------------------------------


def test_horovod_raises_a_runtime_error() -> None:
    with pytest.raises(RuntimeError, match="Horovod detected that one or more processes") as caught:
        horovod.run(fail_on_one, num_proc=2, use_gloo=True)
    assert "rank 1 failed first, by KeyError: 'no such step'" in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)


def test_horovod_warns_of_old_names() -> None:
    with pytest.warns(DeprecationWarning, match="num_proc"):
        assert horovod.run(place, np=2, verbose=2) == [(0, 2), (1, 2)]


def test_horovod_refuses_contradictions(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="hostfile"):
        horovod.run(place, hosts="localhost:1", hostfile=str(tmp_path / "hosts"))
    with pytest.raises(ValueError, match="use_mpi"):
        horovod.run(place, use_gloo=True, use_mpi=True)


def test_a_fixed_number_may_be_given_as_elastic() -> None:
    hosts = "localhost:2,127.0.0.1:2"
    answers = horovod.run(place, num_proc=2, min_num_proc=2, max_num_proc=2, hosts=hosts)
    assert answers == [(0, 2), (1, 2)]


def test_horovod_through_mpi(need_tool, monkeypatch, tmp_path: Path) -> None:
    mpirun = need_tool("mpirun.openmpi")
    (tmp_path / "mpirun").symlink_to(mpirun)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def look() -> tuple:
        rank, size = (os.environ[f"OMPI_COMM_WORLD_{name}"] for name in ("RANK", "SIZE"))
        if rank == "1" and "FAIL" in os.environ:
            raise OSError("no more")
        return int(rank), int(size)

    extra = "--oversubscribe"
    assert horovod.run(look, num_proc=2, use_mpi=True, mpi_args=extra) == [(0, 2), (1, 2)]
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(RuntimeError, match="mpirun failed with exit code 1") as caught:
        horovod.run(look, num_proc=2, use_mpi=True, mpi_args=extra)
    assert "rank 1 failed first, by OSError: no more" in str(caught.value)


def test_the_key_is_in_no_environment_that_mpirun_forwards(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An mpirun that writes down what it is given, and what the file was like."""
    mpirun = tmp_path / "mpirun"
    pretended = [sys.executable, program("pretend_mpirun.py"), str(tmp_path / "seen")]
    mpirun.write_text(f'#!/bin/sh\nexec {shlex.join(pretended)} "$@"\n')
    mpirun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RankError):
        rueda.run(place, np=2, mpi=True)
    said, key_digits, mode, shown = (tmp_path / "seen").read_text().split(" ", 3)
    assert (key_digits, mode, shown) == ("64", "0o600", "[]")
    assert not Path(said[len("file:") :]).exists()  # nothing is left behind


@pytest.mark.parametrize("name", ["RUEDA_RUN", "_HOROVOD_SECRET_KEY"])
def test_a_key_in_the_environment_is_not_handed_to_mpirun(
    need_tool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    mpirun = tmp_path / "mpirun"
    mpirun.write_text("#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n")
    mpirun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv(name, f"{'ab' * 32},1,localhost")
    done = subprocess.run(
        [need_tool("ruedarun"), "-np", "1", "--mpi", "true"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"{name} holds a key" in done.stderr
    assert "abab" not in done.stderr


# ---- Ends ----------------------------------------------------------------------

DRIVER = program("run_and_rest.py")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_the_caller_ends(how: signal.Signals, tmp_path: Path) -> None:
    """By Ctrl-C, or without any chance to tidy up."""
    driver = subprocess.Popen(
        [sys.executable, DRIVER, str(tmp_path)], stderr=subprocess.PIPE, text=True,
        env=environment(), start_new_session=True,
    )  # fmt: skip
    try:
        ranks = read_ids(tmp_path, 2)
        driver.send_signal(how)
        assert wait_until(lambda: not any(is_alive(rank) for rank in ranks))
        _, err = driver.communicate(timeout=LIMIT_S)
    finally:
        driver.kill()
        driver.communicate()
    assert driver.returncode == -how
    assert ("KeyboardInterrupt" in err) == (how == signal.SIGINT)


# ---- Several hosts -------------------------------------------------------------

def test_ranks_of_other_hosts_bring_their_results(make_cluster) -> None:  # noqa: F811
    cluster = make_cluster(3)
    cluster.program = sys.executable
    done = cluster.run(program("run_on_hosts.py"), cluster.slots(0, 2, 1), "hi")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[('hi', 'host1'), ('hi', 'host1'), ('hi', 'host2')]\n"
    done = cluster.run(program("run_on_hosts.py"), cluster.slots(1, 1, 1), "fail")
    assert done.returncode == 1
    assert "on rank 2\n" in done.stderr
    assert done.stderr.endswith("ValueError: not here\n")
