# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of one node, for tests that start ranks with srun.

All of it is private to the session of tests: ports that were free, a key and
folders of its own, processes that are stopped by their ids. A Slurm that the
machine runs already is not touched.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

START_LIMIT_S = 60
STOP_LIMIT_S = 10

# config_overrides: the node has as many cores as it says here, so that a job
# may have more ranks than the machine has cores.
CONFIG = """\
ClusterName=rueda
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/controller
SlurmdSpoolDir={folder}/node
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE OverSubscribe=FORCE:4 State=UP
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Slurm:
    """A running cluster: run() starts ranks in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: list[tuple[str, subprocess.Popen[bytes]]] = []
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def run(
        self, words: list[str], timeout_s: float = 60, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run srun with these words, and return what came.

        srun is asked to end first, so that it takes its ranks with it.
        """
        with subprocess.Popen(
            ["srun", "--immediate=30", "--quiet", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self.environment, **environment},
        ) as process:
            try:
                out, err = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                process.terminate()
                try:
                    process.communicate(timeout=STOP_LIMIT_S)
                finally:
                    process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def start(self) -> None:
        host = socket.gethostname().partition(".")[0]
        for name in ("munge", "controller", "node"):
            (self.folder / name).mkdir(mode=0o755)
        key = self.folder / "munge" / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        (self.folder / "slurm.conf").write_text(
            CONFIG.format(
                host=host,
                controller_port=free_port(),
                node_port=free_port(),
                user=getpass.getuser(),
                folder=self.folder,
            )
        )
        self.start_munge()
        self.start_daemon("slurmctld", "-D", "-i")
        self.start_daemon("slurmd", "-D", "-N", host)
        self.await_true("the node did not come up", self.is_idle)

    def start_munge(self) -> None:
        folder = self.folder / "munge"
        # --force: folders of tests are closed to others, which it minds.
        self.start_daemon(
            "munged",
            "--foreground",
            "--force",
            *(f"--{name}-file={folder}/{name}" for name in ("key", "pid", "log", "seed")),
            f"--socket={folder}/socket",
        )
        self.await_true("munged did not come up", (folder / "socket").exists)

    def start_daemon(self, name: str, *words: str) -> None:
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                [find_program(name), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
            )
        self.daemons.append((name, process))

    def is_idle(self) -> bool:
        done = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"],
            capture_output=True,
            text=True,
            timeout=START_LIMIT_S,
            env=self.environment,
        )
        return done.stdout.strip() == "idle"

    def await_true(self, otherwise: str, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while not is_so():
            ended = [name for name, process in self.daemons if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                pytest.fail(f"Slurm: {otherwise}; ended: {ended}\n{self.logs()}")
            time.sleep(0.1)

    def logs(self) -> str:
        """The last lines of what the daemons said."""
        texts = [(name, self.folder / f"{name}.log") for name, _ in self.daemons]
        return "\n".join(
            f"--- {name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-20:])
            for name, path in texts
        )

    def stop(self) -> None:
        """End what start() has started, the last first."""
        if len(self.daemons) == 3:
            subprocess.run(
                ["scancel", "--quiet", "--user", getpass.getuser()],
                timeout=START_LIMIT_S,
                env=self.environment,
            )
        for _, process in reversed(self.daemons):
            process.terminate()
            try:
                process.wait(timeout=STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def find_program(name: str) -> str | None:
    """Daemons live where ordinary users do not look."""
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster that lasts as long as the session of tests."""
    for name in ("munged", "slurmctld", "slurmd", "srun"):
        if find_program(name) is None:
            pytest.skip(f"missing tool: {name}")
    if os.geteuid() != 0:
        pytest.skip("slurmd starts jobs only for root")
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
