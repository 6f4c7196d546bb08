# SPDX-License-Identifier: Apache-2.0
"""ruedarun with real processes on this host: output, exit codes, and that nothing is left."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest
from ranks import Done, environment, program

LIMIT_S = 60
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HELLO = [sys.executable, str(EXAMPLES / "python" / "hello.py")]


@pytest.fixture
def run(need_tool: Callable[[str], str]) -> Callable[..., Done]:
    """A function that runs ruedarun to its end."""
    program = need_tool("ruedarun")

    def call(*words: str, **more: str) -> Done:
        return subprocess.run(
            [program, *words], capture_output=True, text=True, timeout=LIMIT_S,
            env=environment(**more), stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return call


@pytest.fixture
def start(need_tool: Callable[[str], str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A function that starts ruedarun, which is ended with the test."""
    program = need_tool("ruedarun")
    started: list[subprocess.Popen[str]] = []

    def call(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(), stdin=subprocess.DEVNULL,
        )  # fmt: skip
        started.append(process)
        return process

    try:
        yield call
    finally:
        for process in started:
            process.kill()
            process.communicate()


def is_alive(process: int) -> bool:
    """Is there such a process, and not only its exit code?"""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(is_so: Callable[[], bool], limit_s: float = 20.0) -> bool:
    deadline = time.monotonic() + limit_s
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def read_ids(folder: Path, count: int) -> list[int]:
    """The ids that this many processes have written to files there."""

    def found() -> list[int]:
        texts = [file.read_text() for file in folder.glob("id*")]
        return [int(text) for text in texts if text.endswith("\n")]

    assert wait_until(lambda: len(found()) == count)
    return found()


STUBBORN = program("stubborn.py")


# ---- Ranks and their places --------------------------------------------------


def test_ranks_are_told_their_places(run) -> None:
    names = ["RANK", "SIZE", "LOCAL_RANK", "CROSS_SIZE", "HOSTNAME"]
    script = "echo " + "/".join(f"$HOROVOD_{name}" for name in names)
    done = run("-np", "3", "-H", "localhost:2,127.0.0.1:4", "sh", "-c", script, HOROVOD_RANK="9")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "[0]<stdout>:0/3/0/2/localhost",
        "[1]<stdout>:1/3/1/1/localhost",
        "[2]<stdout>:2/3/0/2/127.0.0.1",
    ]


def test_the_folder_keeps_its_name(need_tool, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    done = subprocess.run(
        [need_tool("ruedarun"), "-np", "1", "sh", "-c", 'echo "$PWD"'], cwd=tmp_path / "link",
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(PWD=f"{tmp_path}/link"),
    )  # fmt: skip
    assert done.stdout == f"[0]<stdout>:{tmp_path}/link\n"


def test_a_folder_that_is_gone_is_told(need_tool, tmp_path: Path) -> None:
    words = f'mkdir "$0/x"; cd "$0/x"; rmdir "$0/x"; exec "{need_tool("ruedarun")}" -np 1 pwd'
    done = subprocess.run(["sh", "-c", words, str(tmp_path)], capture_output=True, text=True,
                          timeout=LIMIT_S, env=environment())  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ruedarun: the folder we are in cannot be found: ")


def test_more_ranks_than_descriptors(need_tool) -> None:
    words = f'ulimit -S -n 100; exec "{need_tool("ruedarun")}" -np 150 echo x'
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, timeout=LIMIT_S,
                          env=environment())  # fmt: skip
    assert (done.returncode, done.stdout.count(">:x\n")) == (0, 150), done.stderr


def test_a_file_without_a_first_line_is_a_script(run, tmp_path: Path) -> None:
    script = tmp_path / "a script"
    script.write_text('echo "$#" "$1"\n')
    script.chmod(0o755)
    done = run("-np", "1", str(script), "x  y", *["z"] * 999)
    assert (done.returncode, done.stdout) == (0, "[0]<stdout>:1000 x  y\n")


def test_too_few_descriptors_are_named(need_tool) -> None:
    words = f'ulimit -n 64; exec "{need_tool("ruedarun")}" -np 40 sleep 600'
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, timeout=LIMIT_S,
                          env=environment())  # fmt: skip
    assert done.returncode == 1
    assert re.fullmatch(
        r"ruedarun: cannot start rank \d+: Too many open files; see ulimit -u and -n\n", done.stderr
    )


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_example_in_python_meets(run, size: int) -> None:
    done = run("-np", str(size), *HELLO)
    assert done.returncode == 0, done.stderr
    total = size * (size + 1) // 2
    assert sorted(done.stdout.splitlines()) == [
        f"[{rank}]<stdout>:rank {rank} of {size}: the sum is {total}" for rank in range(size)
    ]


def test_the_ranks_find_the_launchers_store(run) -> None:
    done = run("-np", "2", "--log-level", "info", *HELLO)
    assert done.returncode == 0, done.stderr
    assert "the ranks meet at the store 127.0.0.1:" in done.stderr


def test_options_become_variables(run, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("params:\n  cycle_time_ms: 7\n  cache_capacity: 9\n")
    script = "echo $HOROVOD_CYCLE_TIME $HOROVOD_CACHE_CAPACITY ${HOROVOD_AUTOTUNE-none}"
    done = run("-np", "1", "--cycle-time-ms", "5", "--config-file", str(config), "sh", "-c", script)
    assert done.stdout == "[0]<stdout>:5 9 none\n"


def test_ranks_have_all_of_horovods_variables(run) -> None:
    """Those of Horovod's workers; what the user has set of the last two stays."""
    names = ["HOSTNAME", "RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE",
             "GLOO_RENDEZVOUS_ADDR", "GLOO_RENDEZVOUS_PORT", "CONTROLLER", "CPU_OPERATIONS",
             "GLOO_IFACE"]  # fmt: skip
    names = [*(f"HOROVOD_{name}" for name in names), "NCCL_SOCKET_IFNAME", "PYTHONUNBUFFERED"]
    script = f"import os; print(*(os.environ[name] for name in {names}))"
    for wishes in ({}, {"HOROVOD_GLOO_IFACE": "eth9", "NCCL_SOCKET_IFNAME": "ib0"}):
        done = run("-np", "1", sys.executable, "-c", script, **wishes)
        assert done.returncode == 0, done.stderr
        iface, name = wishes.values() or ("lo", "lo")
        assert re.fullmatch(
            rf"\[0\]<stdout>:localhost 0 1 0 1 0 1 127\.0\.0\.1 \d+ gloo gloo {iface} {name} 1\n",
            done.stdout,
        )


@pytest.mark.parametrize("ranks", [1, 2])
def test_threads_are_shared_out_and_that_is_said(run, ranks: int) -> None:
    variables = environment()
    del variables["OMP_NUM_THREADS"]
    words = ["-np", str(ranks), "sh", "-c", "echo $OMP_NUM_THREADS"]
    program = Path(sys.executable).parent / "ruedarun"
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=LIMIT_S,
                          env=variables)  # fmt: skip
    cores = len(os.sched_getaffinity(0))
    threads = max(cores // ranks, 1)
    assert sorted(done.stdout.split()) == [f"[{r}]<stdout>:{threads}" for r in range(ranks)]
    plural = "" if ranks == 1 else "s"
    assert f"OMP_NUM_THREADS is set to {threads}, {cores} core" in done.stderr
    assert f" for {ranks} rank{plural};" in done.stderr
    assert "OMP_NUM_THREADS" not in run(*words).stderr


def test_ranks_are_bound_if_wanted(run) -> None:
    script = "import os; print(sorted(os.sched_getaffinity(0)))"
    usable = sorted(os.sched_getaffinity(0))
    words = ["-np", "1", "--bind", "core", sys.executable, "-c", script]
    assert run(*words).stdout == f"[0]<stdout>:[{usable[0]}]\n"
    words[3] = "auto"
    assert run(*words).stdout == f"[0]<stdout>:{usable}\n"


def test_tensorflow_is_told_its_place_if_wanted(run) -> None:
    script = "import json, os; print(json.dumps(json.loads(os.environ['TF_CONFIG'])))"
    done = run("-np", "3", "-H", "localhost:2,127.0.0.1:1", "--tf-config", sys.executable, "-c",
               script)  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    configs = [json.loads(line.partition(":")[2]) for line in lines]
    assert [config["task"] for config in configs] == [
        {"type": "worker", "index": index} for index in range(3)
    ]
    workers = configs[0]["cluster"]["worker"]
    assert [worker.partition(":")[0] for worker in workers] == ["localhost"] * 2 + ["127.0.0.1"]
    assert workers[0] != workers[1]
    assert all(config["cluster"] == {"worker": workers} for config in configs)
    assert "none" in run("-np", "1", "sh", "-c", "echo ${TF_CONFIG-none}").stdout


SHOW_TORCH = (sys.executable, program("print_torch_variables.py"))


def torch_variables(done: Done) -> list[list[str]]:
    assert done.returncode == 0, done.stderr
    return sorted(json.loads(line.partition(":")[2]) for line in done.stdout.splitlines())


def test_ranks_have_the_variables_of_torchrun(run) -> None:
    done = run("-np", "2", *SHOW_TORCH)
    first, second = torch_variables(done)
    assert first[:5] == ["0", "2", "0", "2", "127.0.0.1"]
    assert second[:5] == ["1", "2", "1", "2", "127.0.0.1"]
    assert first[5] == second[5]


def test_a_port_of_the_user_is_taken_and_one_of_another_job_is_not(run) -> None:
    words = ("-np", "1", *SHOW_TORCH)
    mine = torch_variables(run(*words, MASTER_PORT="4321", MASTER_ADDR="127.0.0.2"))[0]
    assert mine[4:] == ["127.0.0.2", "4321", None]
    inherited = {"RANK": "3", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "outer"}
    ours = torch_variables(run(*words, MASTER_PORT="4321", MASTER_ADDR="127.0.0.2", **inherited))[0]
    assert ours[0:2] == ["0", "1"]
    assert ours[4] == "127.0.0.1" and ours[5] != "4321" and ours[6] is None


def test_two_jobs_at_once_have_ports_of_their_own(run, start) -> None:
    held = start("-np", "1", *SHOW_TORCH, "hold")
    assert held.stdout is not None
    lines = [held.stdout.readline(), held.stdout.readline()]
    assert "up" in lines[1]
    taken = json.loads(lines[0].partition(":")[2])[5]
    assert torch_variables(run("-np", "1", *SHOW_TORCH))[0][5] != taken


def test_a_script_for_torch_distributed_runs_unchanged(run) -> None:
    pytest.importorskip("torch")
    script = program("torch_distributed.py")
    done = run("-np", "2", sys.executable, script)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0]<stdout>:sum 3.0", "[1]<stdout>:sum 3.0"]


# ---- Ranks that join no job --------------------------------------------------

LONE = "none of the 2 ranks joined a job, so each ran as if it were alone"

def test_ranks_that_join_no_job_are_told_of_once(run) -> None:
    done = run("-np", "2", sys.executable, "-c", "print('alone')")
    assert done.returncode == 0
    assert done.stderr.count(LONE) == 1, done.stderr
    assert "init_process_group()" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["-c", "from rueda.common.basics import basics; basics.init()"],
        [program("meet_by_port.py")],
        ["-c", "import os, sys; sys.exit(int(os.environ['RANK']))"],
    ],
    ids=["init", "port", "failure"],
)
def test_ranks_of_a_job_are_not_told_that_they_are_alone(run, words: list[str]) -> None:
    done = run("-np", "2", sys.executable, *words)
    assert "joined a job" not in done.stderr


def test_what_ruedarun_sets_itself_is_not_held_against_the_user(run) -> None:
    script = "import rueda.torch as hvd; hvd.init()"
    more = {"RUEDA_LOG_LEVEL": "info", "HOROVOD_LOG_HIDE_TIME": "1"}
    done = run("-np", "1", sys.executable, "-c", script, **more)
    told = [line for line in done.stderr.splitlines() if "has no effect" in line]
    assert len(told) == 1 and "HOROVOD_LOG_HIDE_TIME" in told[0]


def test_a_rank_may_be_alone(run) -> None:
    assert "joined a job" not in run("-np", "1", sys.executable, "-c", "pass").stderr


def test_the_name_of_a_job_has_nothing_of_the_key(run) -> None:
    script = 'echo "$RUEDA_JOB"; head -c 8 /dev/fd/$RUEDA_KEY_FD'
    done = run("-np", "1", "sh", "-c", script)
    name, _, key = done.stdout.partition("\n")
    assert name.startswith("[0]<stdout>:ruedarun-")
    assert len(key) > 8, done
    assert key.partition(":")[2].strip() not in name


def test_the_input_goes_to_rank_0(need_tool) -> None:
    done = subprocess.run(
        [need_tool("ruedarun"), "-np", "2", "cat"],
        input="a\nb\n", capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "[0]<stdout>:a\n[0]<stdout>:b\n")


# ---- Output ------------------------------------------------------------------


def test_lines_are_whole_and_prefixed(run) -> None:
    script = "for i in 1 2 3 4 5; do printf a$RUEDA_RANK; echo b; echo c >&2; done"
    done = run("-np", "4", "sh", "-c", script)
    expected = [f"[{rank}]<stdout>:a{rank}b" for rank in range(4) for _ in range(5)]
    assert sorted(done.stdout.splitlines()) == expected
    of_ranks = [line for line in done.stderr.splitlines() if not line.startswith("ruedarun: ")]
    assert sorted(of_ranks) == sorted(f"[{rank}]<stderr>:c" for rank in range(4) for _ in range(5))


def test_an_unfinished_line_stays_so(run) -> None:
    assert run("-np", "1", "printf", "no end").stdout == "[0]<stdout>:no end"
    done = run("-np", "2", "sh", "-c", "printf $RUEDA_RANK")
    assert sorted(done.stdout.split("\n")) == ["[0]<stdout>:0", "[1]<stdout>:1"]


def test_long_lines_and_any_bytes_survive(need_tool) -> None:
    line = bytes(byte for byte in range(256) if byte not in b"\r\n") * 41000 + b"\n"
    assert len(line) > 10_000_000
    done = subprocess.run(
        [need_tool("ruedarun"), "-np", "2", sys.executable, program("print_bytes.py")],
        capture_output=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    first, second = b"[0]<stdout>:" + line, b"[1]<stdout>:" + line
    assert done.stdout in (first + second, second + first)


def test_the_time_is_put_before_lines(run) -> None:
    done = run("-np", "1", "-prefix-timestamp", "echo", "x")
    assert re.fullmatch(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\[0\]<stdout>:x\n", done.stdout)


@pytest.mark.parametrize(("size", "last"), [(1, "0"), (2, "1"), (11, "10")])
def test_files_are_written_too(run, tmp_path: Path, size: int, last: str) -> None:
    folder = tmp_path / "a" / "b"
    done = run("-np", str(size), "--output-filename", str(folder), "sh", "-c",
               "echo out; echo err >&2")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(list(folder.iterdir())) == size
    first = folder / ("rank." + "0" * len(last))
    assert (first / "stdout").read_text() == "[0]<stdout>:out\n"
    assert (folder / f"rank.{last}" / "stderr").read_text() == f"[{last}]<stderr>:err\n"
    assert done.stdout.count("out\n") == size


def test_a_terminal_gets_colours(need_tool) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [need_tool("ruedarun"), "-np", "1", "echo", "x"], stdin=subprocess.DEVNULL,
        stdout=theirs, stderr=theirs, env=environment(TERM="xterm"),
    )  # fmt: skip
    try:
        assert process.wait(LIMIT_S) == 0
        assert os.read(ours, 1000) == b"\033[36m[0]<stdout>:\033[0mx\r\n"
    finally:
        process.kill()
        os.close(theirs)
        os.close(ours)


def test_a_slow_reader_gets_everything(need_tool) -> None:
    """More than all buffers hold, to a reader who begins late."""
    lines = 1_500_000
    process = subprocess.Popen(
        [need_tool("ruedarun"), "-np", "1", "seq", str(lines)], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    time.sleep(1)
    out, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0
    assert out.count(b"\n") == lines
    assert out.endswith(f"[0]<stdout>:{lines}\n".encode())


def test_nobody_waits_for_a_reader_who_does_not_read(need_tool, tmp_path: Path) -> None:
    """A rank prints far more than all buffers hold, and comes to its end all the same."""
    mark = tmp_path / "done"
    lines = 3000
    script = f"for i in range({lines}): print('x' * 9999)\nopen({str(mark)!r}, 'w')"
    process = subprocess.Popen(
        [need_tool("ruedarun"), "-np", "1", sys.executable, "-c", script],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    try:
        assert wait_until(mark.exists, 40)
        # What is not there is told, also if the job ends before it can be read.
        out, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0
        left_out = re.findall(rb"ruedarun: (\d+) bytes of the ranks' output were left out", err)
        assert left_out, err
        printed = lines * len("[0]<stdout>:" + "x" * 9999 + "\n")
        assert len(out) + sum(map(int, left_out)) == printed
    finally:
        process.kill()
        process.communicate()


def test_a_reader_who_leaves_ends_the_job(need_tool) -> None:
    process = subprocess.Popen(
        [need_tool("ruedarun"), "-np", "2", "yes"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    try:
        process.stdout.read(1000)
        process.stdout.close()
        assert process.wait(LIMIT_S) == 128 + signal.SIGPIPE
    finally:
        process.kill()
        process.wait()


def test_a_full_disk_is_told(need_tool) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [need_tool("ruedarun"), "-np", "2", "echo", "x"], stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=LIMIT_S, env=environment(), stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert done.returncode == 0
    words = "ruedarun: cannot write to the standard output any more: No space left on device"
    assert done.stderr.splitlines().count(words) == 1


# ---- How it ends ---------------------------------------------------------------


def test_the_first_that_fails_decides(run) -> None:
    script = "[ $RUEDA_RANK = 1 ] || exec sleep 100; echo Oh no >&2; exit 7"
    done = run("-np", "3", "sh", "-c", script)
    assert done.returncode == 7
    assert "ruedarun: rank 1 on localhost ended with exit code 7; the job is ended\n" in done.stderr
    assert "the last lines of rank 1 on stderr:\n    Oh no\n" in done.stderr


def test_ranks_that_have_hardly_begun_hear_the_end(run) -> None:
    """Rank 0 fails while others are being started: the job does not wait for the grace."""
    script = "[ $RUEDA_RANK = 0 ] && exit 4; exec sleep 600"
    for _ in range(10):
        began = time.monotonic()
        done = run("-np", "8", "--grace", "50", "sh", "-c", script)
        assert done.returncode == 4
        assert time.monotonic() - began < 40


def test_a_signal_is_named(run) -> None:
    done = run("-np", "2", "sh", "-c", "[ $RUEDA_RANK = 0 ] || exec sleep 100; kill -SEGV $$")
    assert done.returncode == 128 + signal.SIGSEGV
    assert "rank 0 on localhost was killed by signal 11 (SIGSEGV)" in done.stderr


def test_a_signal_without_a_name_is_called_by_its_place(run) -> None:
    done = run("-np", "1", "sh", "-c", f"kill -{signal.SIGRTMIN + 3} $$")
    assert done.returncode == 128 + signal.SIGRTMIN + 3
    assert f"was killed by signal {signal.SIGRTMIN + 3} (SIGRTMIN+3)" in done.stderr


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """The file by which a process joins a cgroup of 64 MiB."""
    lines = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().split())
    if "memory" in lines:
        folder, limit = Path("/sys/fs/cgroup/memory" + lines["memory"]), "memory.limit_in_bytes"
    else:
        folder, limit = Path("/sys/fs/cgroup" + lines[""]), "memory.max"
    folder = folder / f"rueda{os.getpid()}"
    try:
        folder.mkdir()
        (folder / limit).write_text(str(64 << 20))
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        yield folder / "cgroup.procs"
    finally:
        assert wait_until(lambda: (folder / "cgroup.procs").read_text() == "")
        folder.rmdir()


def test_a_want_of_memory_is_named(need_tool, small_memory: Path) -> None:
    join = f'echo $$ >{small_memory}; exec "$0" "$@"'
    done = subprocess.run(
        ["sh", "-c", join, need_tool("ruedarun"), "-np", "2", sys.executable,
         program("take_memory.py")],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGKILL
    assert "rank 1 on localhost was killed by signal 9 (SIGKILL): out of memory" in done.stderr


def test_the_first_exception_is_told(run) -> None:
    """Rank 1 raises and lives on; rank 0, which fails because of that, is the first to end."""
    done = run("-np", "2", sys.executable, program("raise_and_live_on.py"))
    assert done.returncode == 1
    assert "    RuntimeError: a peer has left\n" in done.stderr
    assert "before that rank 1 raised ValueError: bad step\n" in done.stderr


def test_horovodrun_says_what_horovodrun_says(need_tool) -> None:
    words = [need_tool("horovodrun"), "-np", "2", "sh", "-c", "exit $((3 * RUEDA_RANK))"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, env=environment())
    assert done.returncode == 3
    assert "Process 1 exit with status code 3.\n" in done.stderr
    assert "Terminating remaining workers after failure of Process 1.\n" in done.stderr


def test_who_does_not_hear_is_killed_after_the_grace(run, tmp_path: Path) -> None:
    stubborn = f"{sys.executable} {STUBBORN} {tmp_path} SIGTERM"
    command = f"[ $RUEDA_RANK = 0 ] && exec {stubborn}; sleep 1; exit 5"
    done = run("-np", "2", "--grace", "0.5", "sh", "-c", command)
    assert done.returncode == 5, done.stderr
    assert not any(is_alive(process) for process in read_ids(tmp_path, 3))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_launcher_ends_the_job(start, number: signal.Signals) -> None:
    script = "trap 'echo bye; exit 1' INT TERM; echo up; sleep 600 & wait"
    process = start("-np", "2", "sh", "-c", script)
    assert process.stdout.readline() and process.stdout.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + number
    assert out.count("bye\n") == 2
    assert f"{number.name}: the job is ended" in err


def test_ctrl_c_reaches_ranks_once_and_by_the_launcher(need_tool) -> None:
    """On a terminal of its own, whose keys signal the process group in front."""
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [need_tool("ruedarun"), "-np", "2", sys.executable, program("wait_for_ctrl_c.py")],
        preexec_fn=take_terminal, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True,
        env=environment(),
    )  # fmt: skip
    try:
        assert process.stdout.readline() and process.stdout.readline()
        os.write(ours, b"\x03")
        out, _ = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 128 + signal.SIGINT
        assert sorted(out.split()) == ["[0]<stdout>:bye", "[1]<stdout>:bye"]
    finally:
        process.kill()
        process.communicate()
        os.close(theirs)
        os.close(ours)


def test_a_second_interrupt_ends_at_once(start, tmp_path: Path) -> None:
    words = [sys.executable, STUBBORN, str(tmp_path), "SIGINT"]
    process = start("-np", "2", "--grace", "300", *words)
    ranks = read_ids(tmp_path, 6)
    process.send_signal(signal.SIGINT)
    assert "once more" in process.stderr.readline()
    assert any(is_alive(rank) for rank in ranks)
    process.send_signal(signal.SIGINT)
    assert process.wait(LIMIT_S) == 128 + signal.SIGINT
    assert not any(is_alive(rank) for rank in ranks)


def test_nothing_survives_the_launcher(start, tmp_path: Path) -> None:
    process = start(
        "-np", "2", "--grace", "0.5", sys.executable, STUBBORN, str(tmp_path), "SIGTERM"
    )  # fmt: skip
    ranks = read_ids(tmp_path, 6)
    process.kill()
    assert wait_until(lambda: not any(is_alive(rank) for rank in ranks))


def test_nothing_survives_the_agent(start, tmp_path: Path) -> None:
    process = start("-np", "2", sys.executable, STUBBORN, str(tmp_path), "SIGTERM")
    ranks = read_ids(tmp_path, 6)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    os.kill(int(children[0]), signal.SIGKILL)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert "localhost was lost with its agent" in err
    assert not any(is_alive(rank) for rank in ranks)


def test_what_ranks_leave_behind_is_ended(run, tmp_path: Path) -> None:
    note = tmp_path / "id"
    script = f"setsid sh -c 'echo $$ >{note}; sleep 600' & while [ ! -s {note} ]; do :; done"
    assert run("-np", "1", "sh", "-c", script).returncode == 0
    assert not any(is_alive(process) for process in read_ids(tmp_path, 1))


def children_of(process: int) -> list[int]:
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for word in text.split()]


# ---- Mistakes ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["-np", "2"], "there is no command to start"),
        (["true"], "say how many ranks"),
        (["-np", "0", "true"], "takes a whole number from 1"),
        (["-np", "2", "--hostfil", "f", "--cyle-time-ms", "3", "true"], "mean '--cycle-time-ms'?"),
        (["-np", "4", "-H", "localhost:2", "true"], "4 ranks are more than the 2 slots"),
        (["-np", "1", "-H", "localhost", "true"], "'localhost' has no number of slots"),
        (["-np", "1", "-H", "localhost:0", "true"], "has '0' slots"),
        (["-np", "1", "--hostfile", "/nowhere", "true"], "/nowhere: No such file"),
        (["-np", "1", "--config-file", "/nowhere", "true"], "/nowhere: No such file"),
        (["-np", "1", "no-such-command"], "no such program on the PATH"),
        (["-np", "1", "/etc/passwd"], "is it executable"),
        (["-np", "1", "--output-filename", "/proc/x", "true"], "/proc/x"),
        (["-np", "1", "--hostfile", "/proc/version", "true"], "/proc/version:1: 'Linux version"),
        (["-np", "1", "-H", "no.such.host.invalid:1", "true"], "Could not resolve hostname"),
        (["-np", "1", "--jsrun", "true"], "--jsrun: there is no jsrun on the PATH"),
        (["-np", "1", "--mpi", "--bind", "core", "true"], "--bind does not go with --mpi"),
        (["-np", "2", "--min-np", "3", "-H", "a:2,b:2", "true"], "more than the 2 ranks of -np"),
        (["-np", "2", "--min-np", "1", "--mpi", "true"], "--min-np does not go with --mpi"),
        (["agent", "--jion", "x"], "did you mean '--join'?"),
        (["agent"], "--join HOST:PORT and --key-file FILE are needed"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(run, words: list[str], reason: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("#!/no/such/shell -e\n", "names '/no/such/shell': No such file or directory\n"),
        ("#!/bin/sh\r\n", "names '/bin/sh' and ends with a carriage return; take those away"),
    ],
)
def test_a_script_whose_first_line_is_wrong(run, tmp_path: Path, first: str, reason: str) -> None:
    script = tmp_path / "script"
    script.write_bytes(f"{first}echo x\n".encode())
    script.chmod(0o755)
    for words, more in (([str(script)], {}), (["script"], {"PATH": str(tmp_path)})):
        done = run("-np", "2", *words, **more)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
        assert f"cannot run '{script}': its first line {reason}" in done.stderr


@pytest.mark.parametrize("value", ["0", "-5", "soon"])
def test_a_timeout_that_is_none_is_told(run, value: str) -> None:
    done = run("-np", "1", "true", HOROVOD_START_TIMEOUT=value)
    words = f"ruedarun: HOROVOD_START_TIMEOUT is a whole number from 1 to 86400, not '{value}'\n"
    assert (done.returncode, done.stderr) == (2, words)
    # The option wins.
    assert run("-np", "1", "--start-timeout", "9", "true", HOROVOD_START_TIMEOUT=value).stderr == ""


def test_an_elastic_job_of_a_fixed_size_is_run(run) -> None:
    done = run("-np", "2", "--min-np", "2", "--max-np", "2", "echo", "x")
    assert (done.returncode, done.stdout.count("x\n")) == (0, 2), done.stderr


@pytest.mark.parametrize("number", [0, 1, 2])
def test_closed_descriptors_are_no_harm(need_tool, number: int) -> None:
    words = f'exec "{need_tool("ruedarun")}" -np 2 sh -c "echo out; echo err >&2" {number}>&-'
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, timeout=LIMIT_S,
                          env=environment())  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.count("out\n") == (0 if number == 1 else 2)
    assert done.stderr.count("err\n") == (0 if number == 2 else 2)


def test_the_manual_has_every_option_of_the_help(run, source_root: Path) -> None:
    manual = (source_root / "docs" / "man" / "ruedarun.1").read_text()
    groups = ["start", "processes", "hosts", "output", "others", "mpi", "elastic"]
    shown = "".join(run("--help", group).stdout for group in groups)
    options = re.findall(r"^  (?:-\w+, )*(--?[\w-]+)", shown, re.M)
    assert len(options) > 25
    assert [option for option in options if f"Fl {option[1:]}" not in manual] == []


@pytest.mark.parametrize("name", ["rueda.1", "ruedarun.1"])
def test_the_manual_is_where_man_looks_for_it(need_tool, source_root: Path, name: str) -> None:
    """Beside the folder of the program."""
    installed = Path(need_tool("ruedarun")).parents[1] / "share" / "man" / "man1" / name
    assert installed.read_text() == (source_root / "docs" / "man" / name).read_text()


def test_it_tells_about_itself(run, need_tool) -> None:
    version = subprocess.run([need_tool("rueda"), "--version"], capture_output=True, text=True,
                             timeout=LIMIT_S).stdout.split()[1]  # fmt: skip
    assert run("--version").stdout == f"ruedarun {version}\n"
    done = subprocess.run([need_tool("horovodrun"), "-v"], capture_output=True, text=True,
                          timeout=LIMIT_S)  # fmt: skip
    assert done.stdout == f"{version}\n"
    assert "--hosts" in run("--help").stdout


def test_what_is_built_is_told_as_horovodrun_tells_it(need_tool, tmp_path: Path) -> None:
    done = subprocess.run([need_tool("horovodrun"), "--check-build"], capture_output=True,
                          text=True, timeout=LIMIT_S, env={"PATH": str(tmp_path)})  # fmt: skip
    version = subprocess.run([need_tool("horovodrun"), "-v"], capture_output=True, text=True,
                             timeout=LIMIT_S).stdout.strip()  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"""\
Horovod v{version}:

Available Frameworks:
    [X] TensorFlow
    [X] PyTorch
    [ ] MXNet

Available Controllers:
    [ ] MPI
    [X] Gloo

Available Tensor Operations:
    [ ] NCCL
    [ ] DDL
    [ ] CCL
    [ ] MPI
    [X] Gloo
""")  # fmt: skip
