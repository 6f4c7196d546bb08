# SPDX-License-Identifier: Apache-2.0
"""The program `rueda`, run as a user would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable

import pytest

LIMIT_S = 60

# Short runs: what is tested is that all of it works, not how fast.
SHORT = ["--rounds", "1", "--max", "512"]


@pytest.fixture
def rueda(need_tool: Callable[[str], str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A function that runs `rueda` with these words and returns what came."""
    program = need_tool("rueda")

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *words],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env={**os.environ, **environment},
        )

    return run


@pytest.fixture
def start_bench(need_tool: Callable[[str], str]):
    """A function that starts a benchmark that would run for long."""
    program = need_tool("rueda")
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [program, "bench", "--np", "2", "--rounds", "1000", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        # The head of the table is printed when all sides are up.
        assert process.stdout is not None
        while not process.stdout.readline().lstrip().startswith("bytes"):
            assert process.poll() is None, process.stderr.read()
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def workers_of(coordinator: int) -> list[int]:
    """The processes that a benchmark has started, by their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if f"rueda-bench-{coordinator}-".encode() in words:
            found.append(int(entry.name))
    return sorted(found)


def await_no_workers(coordinator: int) -> None:
    deadline = time.monotonic() + 10
    while workers_of(coordinator):
        assert time.monotonic() < deadline, "processes were left behind"
        time.sleep(0.02)


def rows_of(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    """The numbers of the table, a list for each row."""
    lines = [line.split() for line in done.stdout.splitlines()]
    return [words for words in lines if words and words[0].isdigit()]


# ---- Words ------------------------------------------------------------------


def test_version_and_help(rueda) -> None:
    assert rueda("--version").stdout.startswith("rueda ")
    assert "bench" in rueda("--help").stdout
    assert "--vs LIST" in rueda("bench", "--help").stdout
    assert "--config" in rueda("info", "--help").stdout
    assert "--hostfile FILE" in rueda("doctor", "--help").stdout
    assert "--job" in rueda("info", "--help").stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("benhc", "unknown command 'benhc'; did you mean 'bench'?"),
        ("--versoin", "unknown option '--versoin'; did you mean '--version'?"),
        ("docter", "unknown command 'docter'; did you mean 'doctor'?"),
        ("doctor --hosfile x", "did you mean '--hostfile'?"),
        ("doctor -H", "-H needs a value"),
        ("doctor -H a:0", "a number from 1 to"),
        ("doctor -H a --hostfile b", "do not go together"),
        ("doctor --hostfile /no/such/file", "the hostfile /no/such/file"),
        ("doctor --timeout 0", "--timeout takes seconds"),
        ("info --confg", "did you mean '--config'?"),
        ("info --markdown", "--markdown goes with --config"),
        ("info --job --config", "--job and --config do not go together"),
        ("bench --nq 2", "did you mean '--np'?"),
        ("bench --np -3", "--np takes a number"),
        ("bench --np", "--np needs a value"),
        ("bench allredcue", "did you mean 'allreduce'?"),
        ("bench --max 4q", "--max takes a size"),
        ("bench --vs openmp", "did you mean 'openmpi'?"),
        ("bench --vs private", "add --alloc shared"),
        ("bench --algo rong", "did you mean 'ring'?"),
        ("bench --algo zzz", "no algorithm 'zzz'"),
        ("bench --transport loop --algo direct", "no algorithm 'direct'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(rueda, line: str, expected: str) -> None:
    done = rueda(*line.split())
    assert done.returncode == 2
    assert done.stdout == ""
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_words_the_help_is_shown_as_a_mistake(rueda) -> None:
    done = rueda()
    assert done.returncode == 2
    assert done.stderr.startswith("usage:")


# ---- Info -------------------------------------------------------------------


def test_info_tells_what_is_here(rueda) -> None:
    text = rueda("info").stdout
    for word in ("version", "abi", "cpu", "cores", "kernels", "memory", "allreduce"):
        assert f"\n{word}" in f"\n{text}"


def test_config_shows_values_of_the_environment(rueda) -> None:
    text = rueda("info", "--config", RUEDA_LOG_LEVEL="debug").stdout
    line = next(line for line in text.splitlines() if line.startswith("RUEDA_LOG_LEVEL"))
    assert line.split()[1:3] == ["debug", "warn"]


def test_markdown_has_a_row_for_every_setting(rueda) -> None:
    names = [
        line.split()[0]
        for line in rueda("info", "--config").stdout.splitlines()
        if line.startswith("RUEDA_")
    ]
    page = rueda("info", "--config", "--markdown").stdout
    assert names
    for name in names:
        assert f"| `{name}` |" in page


# ---- Info on the job --------------------------------------------------------


@pytest.fixture
def seat(need_tool) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A function that runs `rueda info --job` with these variables only."""
    program = need_tool("rueda")

    def run(**environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, "info", "--job"],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=environment,
        )

    return run


def lines_of(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The first word of each line, and the rest of it."""
    assert done.returncode == 0, done.stderr
    pairs = (line.split(None, 1) for line in done.stdout.splitlines())
    return {name: rest for name, rest in pairs}


@pytest.mark.parametrize(
    ("setting", "words", "proven"),
    [
        ("never", "tensors are neither encrypted nor authenticated (rank 0 has",
         "objects, bytes and integers"),
        ("authenticate", "tensors are authenticated and not encrypted", "objects"),
        ("always", "tensors are sealed (rank 0 has RUEDA_ENCRYPT=always); negotiation is sealed",
         "objects"),
    ],
)  # fmt: skip
def test_the_job_says_how_it_is_protected(
    seat, setting: str, words: str, proven: str
) -> None:
    done = seat(RUEDA_RANK="0", RUEDA_SIZE="2", RUEDA_ENCRYPT=setting)
    said = lines_of(done)["protection"]
    assert f"between hosts {words}" in said
    assert f"the store and last words are sealed; {proven} are authenticated" in said


MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_RANK": "1",
}
SRUN = {
    "SLURM_JOB_ID": "1000",
    "SLURM_STEP_ID": "2",
    "SLURM_PROCID": "3",
    "SLURM_NTASKS": "4",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NODELIST": "n[07-08]",
}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (
            {},
            {"launcher": "none", "rank": "0", "size": "1", "introduction": "none"},
        ),
        (
            {"RUEDA_RANK": "1", "RUEDA_SIZE": "2", "RUEDA_JOB": "mine"},
            {
                "launcher": "rueda",
                "local": "the launcher does not say",
                "introduction": "socket",
                "job": "mine",
            },
        ),
        (
            {"RUEDA_RANK": "1", "RUEDA_SIZE": "2", "RUEDA_STORE": "node:4000"},
            {"launcher": "rueda", "introduction": "store", "store": "node:4000"},
        ),
        (
            {"HOROVOD_RANK": "0", "HOROVOD_SIZE": "2", "HOROVOD_LOCAL_SIZE": "2"},
            {"launcher": "horovod", "local": "? of 2", "job": "horovod"},
        ),
        (
            {**MPIRUN, **SRUN},
            {
                "launcher": "openmpi",
                "rank": "1",
                "size": "4",
                "local": "1 of 2",
                "introduction": "pmix",
            },
        ),
        (
            SRUN,
            {"launcher": "slurm", "introduction": "store", "store": "n07:27002"},
        ),
        (
            {**SRUN, "SLURM_LOCALID": "0", "PMI_RANK": "3", "PMI_SIZE": "4", "PMI_FD": "5"},
            {"launcher": "slurm", "local": "0 of ?", "introduction": "pmi2"},
        ),
    ],
)
def test_info_tells_the_seat_in_the_job(
    seat, environment: dict[str, str], expected: dict[str, str]
) -> None:
    lines = lines_of(seat(**environment))
    assert {name: lines[name] for name in expected} == expected
    assert ("store" in lines) == (lines["introduction"] == "store")
    assert lines["why"]


def test_the_seat_tells_who_was_passed_over(seat) -> None:
    why = lines_of(seat(**MPIRUN, **SRUN))["why"]
    assert "SLURM_PROCID is there too, but mpirun is nearer" in why


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"RUEDA_SIZE": "2"}, "RUEDA_SIZE is set (2) and RUEDA_RANK is not"),
        ({"OMPI_COMM_WORLD_RANK": "3"}, "OMPI_COMM_WORLD_SIZE is not; mpirun sets both"),
        ({"RUEDA_RANK": "2", "RUEDA_SIZE": "2"}, "rank 2 in a job of 2"),
        ({"HOROVOD_RANK": "0", "HOROVOD_SIZE": "2"}, "set RUEDA_STORE=host:port"),
    ],
)
def test_a_seat_that_cannot_be_is_one_line_and_exit_code_one(
    seat, environment: dict[str, str], expected: str
) -> None:
    done = seat(**environment)
    assert done.returncode == 1
    assert done.stdout == ""
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_seat_tells_nothing_of_the_key(seat) -> None:
    done = seat(RUEDA_RANK="0", RUEDA_SIZE="2", RUEDA_KEY_FILE="/a/key", RUEDA_KEY="5ec3e7")
    assert "key" not in done.stdout
    assert "5ec3e7" not in done.stdout + done.stderr


@pytest.mark.parametrize(("peer", "way"), [("openmpi", "pmix"), ("mpich", "pmi1")])
def test_a_real_launcher_is_found(need_tool, peer: str, way: str) -> None:
    words = [need_tool(f"mpirun.{peer}"), "-n", "2", need_tool("rueda"), "info", "--job"]
    more = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=LIMIT_S, env={**os.environ, **more}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"introduction    {way}\n") == 2
    assert "rank            0\n" in done.stdout
    assert "rank            1\n" in done.stdout


# ---- Bench ------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation",
    ["allreduce", "allgather", "broadcast", "alltoall", "reducescatter", "barrier", "pingpong"],
)
def test_every_operation_is_measured_and_right(rueda, operation: str) -> None:
    done = rueda("bench", operation, "--np", "2", *SHORT)
    assert done.returncode == 0, done.stderr
    assert len(rows_of(done)) == (1 if operation == "barrier" else 3)
    assert "Every answer was checked" in done.stdout


def test_a_step_of_tensors_by_name_is_measured(rueda, tmp_path: Path) -> None:
    file = tmp_path / "step.json"
    words = ["--tensors", "20", "--bytes", "256", "--large", "1", "--rounds", "5"]
    done = rueda("bench", "step", "--np", "2", *words, "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "answers checked" in done.stdout
    told = json.loads(file.read_text())
    assert (told["ranks"], told["tensors"], told["bytes"]) == (2, 20, 256)
    assert [row["what"] for row in told["rows"]] == [
        "20 tensors of 256 bytes", "one of 8 bytes", "one of 128 MiB"
    ]  # fmt: skip
    for row in told["rows"]:
        assert row["what"] in done.stdout
        assert row["named_us"] > 0 and row["bare_us"] > 0 and row["ratio"] > 0


@pytest.mark.parametrize("ranks", ["1", "3"])
def test_other_numbers_of_ranks(rueda, ranks: str) -> None:
    done = rueda("bench", "--np", ranks, *SHORT)
    assert done.returncode == 0, done.stderr
    assert len(rows_of(done)) == 3


@pytest.mark.parametrize(
    "words",
    [
        ["--transport", "loop"],
        ["--transport", "shm"],
        ["--transport", "tcp"],
        ["--algo", "ring"],
        ["--alloc", "shared"],
        ["--bind", "core"],
        ["--dtype", "bfloat16", "--reduction", "average"],
        ["--dtype", "int8", "--reduction", "product"],
        ["--dtype", "bool", "--reduction", "max"],
        ["--dtype", "float64", "--reduction", "adasum"],
    ],
    ids=" ".join,
)
def test_every_choice_is_measured_and_right(rueda, words: list[str]) -> None:
    done = rueda("bench", "--np", "2", *SHORT, *words)
    assert done.returncode == 0, done.stderr
    assert len(rows_of(done)) == 3


def test_json_has_the_rows_of_the_table(rueda, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = rueda("bench", "--np", "2", *SHORT, "--vs", "memcpy", "--json", str(file))
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())
    assert [row["bytes"] for row in rows] == [8, 64, 512]
    for row in rows:
        assert row["op"] == "allreduce"
        assert row["ranks"] == 2
        assert row["dtype"] == "float32"
        assert row["reduction"] == "sum"
        assert row["alloc"] == "private"
        assert 0 < row["best_us"] <= row["median_us"] <= row["p99_us"]
        assert row["algbw_gbs"] == pytest.approx(row["busbw_gbs"])
        assert row["algbw_gbs"] == pytest.approx(row["bytes"] / row["median_us"] / 1e3)
        assert row["peers"]["memcpy"] > 0
        assert row["ratio"]["memcpy"] > 0
        assert row["line_ns"] > 0


def test_a_file_that_cannot_be_written_is_named(rueda) -> None:
    done = rueda("bench", "--np", "1", *SHORT, "--json", "/nowhere/rows.json")
    assert done.returncode == 1
    assert "/nowhere/rows.json" in done.stderr


@pytest.mark.parametrize("peer", ["openmpi", "mpich"])
def test_a_peer_is_measured_beside_us(rueda, need_tool, peer: str) -> None:
    need_tool(f"mpirun.{peer}")
    done = rueda("bench", "--np", "2", *SHORT, "--vs", peer)
    assert done.returncode == 0, done.stderr
    assert f"vs {peer}" in done.stdout
    assert all(float(row[6]) > 0 for row in rows_of(done)), done.stderr


def test_private_memory_is_measured_beside_shared(rueda, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    words = ["--alloc", "shared", "--vs", "private", "--json", str(file)]
    done = rueda("bench", "--np", "2", *SHORT, *words)
    assert done.returncode == 0, done.stderr
    assert "vs private" in done.stdout
    for row in json.loads(file.read_text()):
        assert row["alloc"] == "shared"
        assert row["peers"]["private"] > 0
        assert row["ratio"]["private"] > 0


def test_tcp_is_measured_beside_raw_sockets(rueda, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    words = ["--transport", "tcp", "--vs", "raw,algo:tree", "--json", str(file)]
    done = rueda("bench", *SHORT, *words, RUEDA_TCP_STREAMS="3")
    assert done.returncode == 0, done.stderr
    for row in json.loads(file.read_text()):
        assert (row["ranks"], row["transport"], row["used"]) == (2, "tcp", "tcp")
        assert row["peers"].keys() == row["ratio"].keys() == {"raw", "tree"}
        assert min(row["ratio"].values()) > 0
    # Settings reach the ranks, wherever they come from.
    done = rueda("bench", *SHORT, "--json", str(file), RUEDA_TRANSPORT="tcp")
    assert {row["used"] for row in json.loads(file.read_text())} == {"tcp"}
    assert rueda("bench", *SHORT, RUEDA_TCP_STREAMS="99").returncode == 1


def test_ranks_of_a_launcher_use_what_was_asked_for(need_tool) -> None:
    settings = {"RUEDA_SIZE": "2", "RUEDA_JOB": f"tool-way-{os.getpid()}"}
    words = [need_tool("rueda"), "bench", *SHORT, "--transport", "tcp"]
    ranks = [
        subprocess.Popen(
            words, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **settings, "RUEDA_RANK": str(rank)},
        )
        for rank in range(2)
    ]  # fmt: skip
    output = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    assert "# transport   tcp, as all ranks say" in output[0]


def private_bytes(pid: int) -> int:
    """The memory of a process that belongs to it alone."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:")) << 10


def test_the_peer_private_alone_has_private_buffers(start_bench) -> None:
    buffer = 64 << 20
    sizes = ["--min", str(buffer), "--max", str(buffer)]
    bench = start_bench("--alloc", "shared", "--vs", "private", *sizes)
    ours: list[int] = []
    peer: list[int] = []
    for pid in workers_of(bench.pid):
        group = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[3]
        (ours if group == b"0" else peer).append(pid)
    assert len(ours) == len(peer) == 2
    # The run ends by itself after a while.
    while not all(private_bytes(pid) >= buffer for pid in peer):
        time.sleep(0.02)
        assert bench.poll() is None, "the peer had no private buffers"
    # Ours were made first.
    assert all(private_bytes(pid) < buffer for pid in ours)


def test_a_peer_that_is_not_installed_is_named_and_left_out(rueda) -> None:
    done = rueda("bench", "--np", "2", *SHORT, "--vs", "openmpi,mpich", PATH="/nowhere")
    assert done.returncode == 0, done.stderr
    assert "apt-get install openmpi-bin" in done.stderr
    assert "apt-get install mpich" in done.stderr
    assert len(rows_of(done)) == 3


def test_a_peer_that_fails_is_left_out_with_its_words(rueda, tmp_path: Path) -> None:
    script = tmp_path / "mpirun.mpich"
    script.write_text("#!/bin/sh\necho no network today\nexit 3\n")
    script.chmod(0o755)
    done = rueda("bench", "--np", "2", *SHORT, "--vs", "mpich", PATH=f"{tmp_path}:/bin")
    assert done.returncode == 0, done.stderr
    assert "exit code 3" in done.stderr
    assert "no network today" in done.stderr
    assert len(rows_of(done)) == 3


def test_ranks_of_another_launcher_measure_together(need_tool, tmp_path: Path) -> None:
    program = need_tool("rueda")
    ranks = [
        subprocess.Popen(
            [program, "bench", "broadcast", *SHORT, "--vs", "memcpy"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "RUEDA_RANK": str(rank),
                "RUEDA_SIZE": "2",
                "RUEDA_JOB": f"tool-test-{os.getpid()}",
            },
        )
        for rank in range(2)
    ]
    output = [rank.communicate(timeout=LIMIT_S) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], output
    assert "vs memcpy" in output[0][0]
    assert output[1][0] == ""


SHELL_OF_SRUN = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}
SHELL_OF_MPIRUN = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}


@pytest.mark.parametrize("shell", [SHELL_OF_SRUN, SHELL_OF_MPIRUN], ids=["srun", "mpirun"])
def test_in_a_shell_that_is_a_job_of_one_it_starts_ranks_itself(
    rueda, shell: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "rows.json"
    done = rueda("bench", "--np", "2", *SHORT, "--json", str(file), **shell)
    assert done.returncode == 0, done.stderr
    assert [row["ranks"] for row in json.loads(file.read_text())] == [2, 2, 2]


# ---- Tune -------------------------------------------------------------------


def test_tuned_rows_can_be_used(rueda, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    done = rueda("bench", "--np", "2", *SHORT, "--tune", str(file))
    assert done.returncode == 0, done.stderr
    rows = file.read_text().split(";\n")
    assert rows[0].startswith("allreduce:0-")
    assert "-inf@2:" in rows[-2]
    again = rueda("bench", "--np", "2", *SHORT, RUEDA_TUNE_FILE=str(file))
    assert again.returncode == 0, again.stderr


def test_without_a_file_tuned_rows_are_printed(rueda) -> None:
    done = rueda("bench", "barrier", "--np", "2", *SHORT, "--tune")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("barrier:@2:")


# ---- Ends -------------------------------------------------------------------


def test_the_death_of_a_rank_ends_the_run(start_bench) -> None:
    bench = start_bench()
    os.kill(workers_of(bench.pid)[1], signal.SIGKILL)
    _, errors = bench.communicate(timeout=LIMIT_S)
    assert bench.returncode == 1
    assert "killed by signal 9" in errors
    await_no_workers(bench.pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_and_leaves_nobody_behind(start_bench, number: int) -> None:
    bench = start_bench()
    bench.send_signal(number)
    _, errors = bench.communicate(timeout=LIMIT_S)
    assert bench.returncode == 128 + number
    assert f"ended by signal {int(number)}" in errors
    await_no_workers(bench.pid)


@pytest.mark.parametrize("peer", ["openmpi", "mpich"])
def test_workers_of_a_killed_coordinator_leave(start_bench, need_tool, peer: str) -> None:
    need_tool(f"mpirun.{peer}")
    bench = start_bench("--vs", peer)
    assert len(workers_of(bench.pid)) >= 5
    bench.kill()
    bench.wait(timeout=LIMIT_S)
    await_no_workers(bench.pid)


def test_a_peer_whose_rank_dies_is_left_out(start_bench, need_tool) -> None:
    need_tool("mpirun.mpich")
    bench = start_bench("--vs", "mpich", "--max", "8")
    victim = next(
        pid
        for pid in reversed(workers_of(bench.pid))
        if b"\0mpich\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
        and b"mpirun" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        and "hydra" not in os.readlink(f"/proc/{pid}/exe")
    )
    os.kill(victim, signal.SIGKILL)
    _, errors = bench.communicate(timeout=LIMIT_S)
    assert bench.returncode == 0, errors
    assert "mpich is out" in errors
    await_no_workers(bench.pid)
