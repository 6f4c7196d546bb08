# SPDX-License-Identifier: Apache-2.0
"""ruedarun that hands the start over to others: mpirun and jsrun, and the hosts of an LSF job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ranks import Done, environment, program
from test_ruedarun import HELLO, LIMIT_S


class Place:
    """A folder for programs, which comes first on the PATH, and ruedarun."""

    def __init__(self, folder: Path, ruedarun: str) -> None:
        self.folder = folder
        self.ruedarun = ruedarun

    def add(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def stand_in(self, name: str, version: str = "") -> None:
        text = Path(program("tell_how_called.py")).read_text()
        self.add(name, f"#!{sys.executable}\n{text}")
        (self.folder / f"{name}.version").write_text(version)

    def run(self, *words: str, is_alone: bool = False, **more: str) -> Done:
        path = f"{self.folder}" if is_alone else f"{self.folder}:{os.environ['PATH']}"
        return subprocess.run(
            [self.ruedarun, *words], capture_output=True, text=True, timeout=LIMIT_S,
            env=environment(PATH=path, **more), stdin=subprocess.DEVNULL,
        )  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, need_tool: Callable[[str], str]) -> Place:
    return Place(tmp_path, need_tool("ruedarun"))


def without(words: list[str], option: str) -> list[str]:
    """The words without each such option and its value."""
    at = [i for i, word in enumerate(words) if word == option]
    return [word for i, word in enumerate(words) if i not in at and i - 1 not in at]


# ---- By mpirun -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_mpirun_may_start_the_ranks(place: Place, need_tool, name: str) -> None:
    place.add("mpirun", f'#!/bin/sh\nexec {need_tool(f"mpirun.{name}")} "$@"\n')
    done = place.run("-np", "2", "--mpi", *HELLO)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("of 2: the sum is 3\n") == 2
    script = "echo $HOROVOD_CONTROLLER $HOROVOD_CYCLE_TIME; exit 3"
    done = place.run("-np", "1", "--mpi", "--cycle-time-ms", "4", "sh", "-c", script)
    assert (done.returncode, "mpi 4\n" in done.stdout) == (3, True), done.stdout


def test_mpirun_is_told_the_hosts(place: Place) -> None:
    place.stand_in("mpirun", "mpirun (Open MPI) 4.1.4")
    (place.folder / "hosts").write_text("a slots=2\nb slots=2\n")
    for hosts in (["-H", "a:2,b:2"], ["--hostfile", str(place.folder / "hosts")]):
        done = place.run("-np", "3", "--mpi", *hosts, "-p", "2222", "--network-interfaces", "eth0",
                         "--fusion-threshold-mb", "1", "--mpi-args", "-mca x y",
                         "python", "a b.py", "-np", "7", SECRET="dear")  # fmt: skip
        assert done.returncode == 5, done.stderr
        told = json.loads(done.stdout)
        assert "dear" not in " ".join(told["words"])
        assert told["variables"]["SECRET"] == "dear"
        assert told["variables"]["HOROVOD_CONTROLLER"] == "mpi"
        names = [word for i, word in enumerate(told["words"]) if told["words"][i - 1] == "-x"]
        assert {"SECRET", "HOROVOD_FUSION_THRESHOLD", "HOROVOD_CONTROLLER"} <= set(names)
        assert not {"HOME", "HOSTNAME", "SHLVL"} & set(names)
        assert without(told["words"], "-x") == [
            "--allow-run-as-root", "--tag-output", "-np", "3", "-H", "a:2,b:2",
            "-bind-to", "none", "-map-by", "slot", "-mca", "pml", "ob1", "-mca", "btl", "^openib",
            "-mca", "btl_tcp_if_include", "eth0", "-mca", "oob_tcp_if_include", "eth0",
            "-mca", "plm_rsh_args", "-p 2222", "-mca", "x", "y", "python", "a b.py", "-np", "7",
        ]  # fmt: skip


def test_an_mpirun_that_is_missing_or_odd_is_named(place: Place) -> None:
    done = place.run("-np", "2", "--mpi", "true", is_alone=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "there is no mpirun on the PATH" in done.stderr
    assert "[ ] MPI\n    [X] Gloo\n" in place.run("--check-build", is_alone=True).stdout
    place.add("mpirun", "#!/bin/sh\necho Some MPI 1.0\n")
    done = place.run("-np", "2", "--mpi", "true", is_alone=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "those of Open MPI, Spectrum MPI, MPICH and Intel MPI are known" in done.stderr
    assert "[X] MPI\n    [X] Gloo\n" in place.run("--check-build", is_alone=True).stdout


# ---- LSF and jsrun -------------------------------------------------------------


def test_jsrun_starts_the_ranks_of_an_lsf_job(place: Place) -> None:
    """Asked for or not; the node of the batch script gets none."""
    place.stand_in("jsrun")
    for words in (["--jsrun"], []):
        done = place.run(*words, "--tcp", "--cycle-time-ms", "3", "python", "a b.py", "-x",
                         LSB_JOBID="1", LSB_MCPU_HOSTS="batch 1 a 2 b 2")  # fmt: skip
        assert done.returncode == 5, done.stderr
        told = json.loads(done.stdout)
        assert told["words"][0] == "--erf_input"
        assert told["words"][2:] == ["--smpiargs", "-tcp", "python", "a b.py", "-x"]
        assert told["variables"]["HOROVOD_CYCLE_TIME"] == "3"
        assert told["variables"]["HOROVOD_CONTROLLER"] == "mpi"
        assert told["file"] == (
            "overlapping_rs: allow\ncpu_index_using: logical\n"
            "\nrank: 0: { hostname: a; cpu: {0-0} ; gpu: * ; mem: * }\n"
            "rank: 1: { hostname: a; cpu: {1-1} ; gpu: * ; mem: * }\n"
            "\nrank: 2: { hostname: b; cpu: {0-0} ; gpu: * ; mem: * }\n"
            "rank: 3: { hostname: b; cpu: {1-1} ; gpu: * ; mem: * }\n"
        )


def test_jsrun_may_be_told_more(place: Place) -> None:
    place.stand_in("jsrun")
    lsf = {"LSB_JOBID": "1", "LSB_MCPU_HOSTS": "batch 1 a 8 b 8"}
    done = place.run("--jsrun", "-np", "2", "-H", "b:1,a:1", "--output-filename", "log", "c", **lsf)
    told = json.loads(done.stdout)
    assert told["words"][2:] == ["--stdio_stderr", "log", "--stdio_stdout", "log", "c"]
    assert "rank: 0: { hostname: b; cpu: {0-7} ;" in told["file"]
    done = place.run("--jsrun", "--binding-args", "-n 4 -a 1", "c", **lsf)
    assert json.loads(done.stdout)["words"] == ["-n", "4", "-a", "1", "c"]


def test_jsrun_that_cannot_be_is_told(place: Place) -> None:
    def complaint(*words: str, **more: str) -> str:
        done = place.run("--jsrun", *words, "true", is_alone=True, **more)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        return done.stderr

    lsf = {"LSB_JOBID": "1", "LSB_MCPU_HOSTS": "a 2"}
    assert "there is no jsrun on the PATH" in complaint("-np", "2")
    assert "there is no jsrun on the PATH" in complaint(**lsf)
    place.stand_in("jsrun")
    assert "this is not an LSF job" in complaint("-np", "2")
    assert "host 'c' is none of this LSF job" in complaint("-np", "1", "-H", "c:1", **lsf)
    assert "3 ranks are more than the 2 slots" in complaint("-np", "3", **lsf)
    assert "the hosts of this LSF job are not known" in complaint(LSB_JOBID="1")


@pytest.mark.parametrize("variable", ["LSB_MCPU_HOSTS", "LSB_HOSTS", "LSB_DJOB_HOSTFILE"])
def test_an_lsf_job_without_jsrun_says_the_hosts(place: Place, variable: str) -> None:
    file = place.folder / "hosts"
    file.write_text("localhost\nlocalhost\n127.0.0.1\n")
    values = {"LSB_MCPU_HOSTS": "localhost 2 127.0.0.1 1", "LSB_DJOB_HOSTFILE": str(file),
              "LSB_HOSTS": "localhost localhost 127.0.0.1"}  # fmt: skip
    done = place.run("sh", "-c", "echo $RUEDA_SIZE $HOROVOD_HOSTNAME", LSB_JOBID="1",
                     **{variable: values[variable]})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "[0]<stdout>:3 localhost", "[1]<stdout>:3 localhost", "[2]<stdout>:3 127.0.0.1",
    ]  # fmt: skip
    place.stand_in("jsrun")
    done = place.run("--gloo", "true", LSB_JOBID="1", **{variable: values[variable]})
    assert done.returncode == 0, done.stderr
