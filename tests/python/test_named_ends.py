# SPDX-License-Identifier: Apache-2.0
"""Tensors by name on one host: settings, stalls, timelines and how jobs end.

Ranks are tests/multi/named_main.c.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from named import all_well, here, program
from ranks import environment

GIB = 1 << 30


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"HOROVOD_FUSION_THRESHOLD": "0"},
        {"HOROVOD_CACHE_CAPACITY": "0"},
        {"RUEDA_CACHE_CAPACITY": "3"},
        {"RUEDA_FUSION_BYTES": "2k", "RUEDA_GROUPS_ALONE": "1"},
        {"RUEDA_TRANSPORT": "tcp"},
    ],
)
def test_everything_comes_out_right_with_any_setting(settings: dict[str, str]) -> None:
    all_well(here(4, "everything", **settings))


@pytest.mark.parametrize("transport", ["auto", "messages", "tcp"])
def test_many_sets_that_overlap_run_at_the_same_time(transport: str) -> None:
    """6 ranks in 57 sets, any two ranks in 16: more than there are channels between them."""
    all_well(here(6, "many_sets", RUEDA_TRANSPORT=transport))


def test_more_names_than_there_are_numbers_are_told_of_once() -> None:
    done = here(2, "order", RUEDA_CACHE_CAPACITY="3")
    all_well(done)
    assert [one.stderr.count("there are more than 3 names of tensors") for one in done] == [1, 0]
    done = here(2, "order")
    all_well(done)
    assert [one.stderr for one in done] == ["", ""]


def test_ranks_with_other_settings_work_together() -> None:
    """The first rank's word counts for its host."""
    job = f"named-differ-{os.getpid()}"
    started = [
        subprocess.Popen(
            [program(), "order"],
            env=environment(RUEDA_RANK=str(rank), RUEDA_SIZE="2", RUEDA_JOB=job,
                            RUEDA_CACHE_CAPACITY=capacity, RUEDA_FUSION_BYTES=fusion),
        )
        for rank, (capacity, fusion) in enumerate([("1000", "1m"), ("2", "4k")])
    ]  # fmt: skip
    assert [one.wait(60) for one in started] == [0, 0]


def test_a_program_starts_again_after_a_shutdown() -> None:
    all_well(here(2, "again"))


@pytest.mark.parametrize("way", ["kill", "exit", "leave"])
@pytest.mark.parametrize("victim", [0, 2])
def test_who_ends_while_tensors_are_pending_is_named(way: str, victim: int) -> None:
    for rank, one in enumerate(here(3, way, str(victim))):
        if rank == victim:
            continue
        status, words = one.stdout.split(" ", 1)
        assert int(status) == -5, one.stdout + one.stderr
        assert f"rank {victim} (pid " in words
        assert f"on host {os.uname().nodename.split('.')[0]}" in words


@pytest.mark.parametrize("missing", [0, 1])
def test_a_stall_is_told_and_ends_the_job(missing: int) -> None:
    """Also where the coordinator is the one who never submitted anything."""
    done = here(3, "stall", str(missing), HOROVOD_STALL_CHECK_TIME_SECONDS="1",
                HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="2")  # fmt: skip
    assert f"Missing ranks:\n{missing}: [alone, also.alone]" in done[0].stderr
    for rank, one in enumerate(done):
        status, words = one.stdout.split(" ", 1)
        assert missing == rank or int(status) == (-14 if rank == 0 else -5)
        assert "tensors have waited for more than 2 seconds" in words
        assert f"{missing}!: [alone, also.alone]" in words


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize(
    "setting", [{"HOROVOD_STALL_CHECK_DISABLE": "1"}, {"RUEDA_STALL_CHECK": "0"}]
)
def test_without_the_check_nobody_speaks_of_a_stall(missing: int, setting: dict[str, str]) -> None:
    """The missing rank comes after 4 s, and all goes on."""
    done = here(3, "stall", str(missing), HOROVOD_STALL_CHECK_TIME_SECONDS="1",
                HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="2", **setting)  # fmt: skip
    all_well(done)
    for one in done:
        assert one.stdout.startswith("0 "), one.stdout
        assert "Missing ranks" not in one.stderr and "waited" not in one.stderr


@pytest.mark.parametrize("missing", [0, 1])
def test_a_stall_ends_the_job_without_a_warning(missing: int) -> None:
    """Before the rank that is missing brings anything, which it does in the end."""
    done = here(2, "stall", str(missing), HOROVOD_STALL_CHECK_TIME_SECONDS="0",
                HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="2")  # fmt: skip
    assert "negotiate: warn" not in done[0].stderr
    for one in done:
        assert "tensors have waited for more than 2 seconds" in one.stdout
        assert f"{missing}!: [alone, also.alone]" in one.stdout


def test_of_horovods_choices_only_known_ones_are_taken() -> None:
    names = ["HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS"]
    done = here(2, "order", **dict.fromkeys(names, "GLOO"))
    all_well(done)
    assert all(one.stderr == "" for one in done)
    for name, values in zip(names, ["mpi or gloo", "mpi, gloo or ccl"]):
        for one in here(2, "order", **{name: "nccl"}):
            assert one.returncode != 0
            assert f'{name} is "nccl", which is not {values}' in one.stderr


def test_what_launchers_set_or_nobody_misses_is_told_to_who_asks() -> None:
    names = ["HOSTNAME", "ELASTIC", "LOG_HIDE_TIME", "DISABLE_NVTX_RANGES"]
    settings = {f"HOROVOD_{name}": "1" for name in names}
    for level, times in (("warn", 0), ("info", 1)):
        done = here(2, "order", RUEDA_LOG_LEVEL=level, **settings)
        all_well(done)
        told = "".join(one.stderr for one in done)
        assert [told.count(f"{name} has no effect") for name in settings] == [times] * 4


@pytest.mark.parametrize("timeline", ["", "idle.json"])
def test_who_has_nothing_to_do_takes_no_time(tmp_path: Path, timeline: str) -> None:
    """10 ms of the processor in 10 s; other busy processes do not count."""
    path = str(tmp_path / timeline) if timeline else ""
    done = here(2, "idle", RUEDA_TIMELINE=path)
    all_well(done)
    assert max(int(one.stdout) for one in done) < 10000


# ---- Timelines --------------------------------------------------------------


def names_in(path: Path) -> set[str]:
    events = json.loads(path.read_text())
    return {event["args"]["name"] for event in events if event.get("name") == "process_name"}


def noted_in(path: Path, phase: str) -> list[tuple[dict[str, Any], str, int]]:
    """Events of this phase, with their tensor and rank."""
    events = json.loads(path.read_text())
    names = {event["pid"]: event["args"]["name"] for event in events
             if event.get("name") == "process_name"}  # fmt: skip
    return [(event, names[event["pid"]], event.get("tid", 0)) for event in events
            if event["ph"] == phase]  # fmt: skip


def begun_in(path: Path) -> set[tuple[str, int]]:
    return {(name, rank) for _, name, rank in noted_in(path, "B")}


def ended_in(path: Path) -> set[tuple[str, int]]:
    return {(name, rank) for event, name, rank in noted_in(path, "E") if "args" in event}


@pytest.mark.parametrize("variable", ["RUEDA_TIMELINE", "HOROVOD_TIMELINE"])
def test_a_timeline_is_asked_for_by_a_variable(tmp_path: Path, variable: str) -> None:
    path = tmp_path / "timeline.json"
    all_well(here(3, "order", **{variable: str(path)}))
    events = json.loads(path.read_text())
    count = Counter((event.get("tid", 0), event["ph"]) for event in events)
    # How often a rank waits before it packs is its own affair.
    waits = Counter(event.get("tid", 0) for event in events if event.get("name") == "WAIT_FOR_DATA")
    assert all(count[rank, "B"] == count[rank, "E"] for rank in range(3)), count
    assert len({count[rank, "B"] - waits[rank] for rank in range(3)}) == 1, (count, waits)
    assert names_in(path) >= {f"op.0.{number}" for number in range(60)}


def test_a_timeline_is_started_and_stopped_by_calls(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    all_well(here(2, "timeline", TIMELINE_FILE=str(path), HOROVOD_TIMELINE="DYNAMIC"))
    assert ended_in(path) == {("during", rank) for rank in range(2)}
    assert all(name == "during" for name, _ in begun_in(path))


def test_rank_0_alone_starts_and_stops_a_timeline(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    all_well(here(4, "lone_timeline", TIMELINE_FILE=str(path)))
    assert ended_in(path) == {("during", rank) for rank in range(4)}


def test_tensors_of_a_group_run_together_and_the_timeline_shows_it(tmp_path: Path) -> None:
    """Allgathers and reduce-scatters are packed as allreduces are."""
    path = tmp_path / "timeline.json"
    all_well(here(2, "groups", RUEDA_TIMELINE=str(path)))
    events = json.loads(path.read_text())
    names = {event["pid"]: event["args"]["name"] for event in events
             if event.get("name") == "process_name"}  # fmt: skip
    seen: dict[str, set[str]] = {}
    for event in events:
        if event["ph"] == "B":
            seen.setdefault(names[event["pid"]], set()).add(event["name"])
    packed = {"MEMCPY_IN_FUSION_BUFFER", "MEMCPY_OUT_FUSION_BUFFER"}
    for number in range(6):
        assert seen[f"op.0.{5 * number}"] >= {*packed, "RUEDA_ALLREDUCE"}
        assert seen[f"op.0.{5 * number + 1}"] >= {
            *packed, "RUEDA_EXCHANGE_ROWS", "ALLOCATE_OUTPUT", "RUEDA_ALLGATHER"
        }  # fmt: skip
        assert seen[f"op.0.{5 * number + 4}"] >= {
            *packed, "ALLOCATE_OUTPUT", "RUEDA_REDUCESCATTER"
        }  # fmt: skip


def test_a_timeline_is_whole_when_the_job_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    job = f"named-killed-{os.getpid()}"
    started = [
        subprocess.Popen(
            [program(), "forever"],
            env=environment(RUEDA_RANK=str(rank), RUEDA_SIZE="2", RUEDA_JOB=job,
                            RUEDA_TIMELINE=str(path)),
            stdout=subprocess.DEVNULL,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while not path.exists() or path.stat().st_size < 100_000:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for one in started:
            one.send_signal(signal.SIGKILL)
    finally:
        for one in started:
            one.kill()
            one.wait(30)
    assert "op.0.1" in names_in(path)


# ---- Others -----------------------------------------------------------------


def test_variables_without_effect_are_named_once() -> None:
    done = here(2, "again", HOROVOD_AUTOTUNE="1", HOROVOD_CYCLE_TIME="5")
    all_well(done)
    for name in ("HOROVOD_AUTOTUNE", "HOROVOD_CYCLE_TIME"):
        assert "".join(one.stderr for one in done).count(f"{name} has no effect") == 1


def free_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


def test_a_tensor_of_5_gb() -> None:
    """Takes most of a minute, so only where it is asked for."""
    if "RUEDA_TEST_HUGE" not in os.environ:
        pytest.skip("takes long; set RUEDA_TEST_HUGE")
    if free_memory() < 16 * GIB:
        pytest.skip("less than 16 GiB of memory are free")
    all_well(here(2, "huge", limit_s=300))
