# SPDX-License-Identifier: Apache-2.0
"""ruedarun on several hosts: network namespaces, by a stand-in for ssh, by ssh, and without."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Callable

import pytest
from cluster import Hosts, ip
from ranks import Done, check_way, environment, free_port, program
from test_ruedarun import (
    HELLO,
    LIMIT_S,
    STUBBORN,
    children_of,
    is_alive,
    read_ids,
    wait_until,
)
from test_strangers import STRANGER, WORDS, call

# Ranks that say which way their messages go.
TELLING = ["env", "RUEDA_LOG_LEVEL=info", *HELLO]


class Cluster:
    """Hosts, of which host 0 has the launcher, and a folder with what it takes for ssh."""

    def __init__(self, hosts: Hosts, folder: Path, program: str) -> None:
        self.hosts = hosts
        self.folder = folder
        self.program = program
        self.started: list[subprocess.Popen[str]] = []
        self.identity: list[str] = []
        hosts.ssh(folder)

    def slots(self, *counts: int) -> str:
        return ",".join(f"{self.hosts.ipv4(i)}:{count}" for i, count in enumerate(counts) if count)

    def use_for_ssh(self, script: str) -> None:
        """A shell script in place of ssh; $ssh is the stand-in that works."""
        (self.folder / "ssh").rename(self.folder / "working-ssh")
        path = self.folder / "ssh"
        path.write_text(f"#!/bin/sh\nssh={self.folder}/working-ssh\n{script}")
        path.chmod(0o755)

    def start(self, *words: str, host: int = 0, **more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self.hosts.command(host, self.program, *words), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(PATH=f"{self.folder}:{os.environ['PATH']}", LR="0.1", **more),
        )  # fmt: skip
        self.started.append(process)
        return process

    def run(self, *words: str) -> Done:
        process = self.start(*words)
        out, err = process.communicate(timeout=LIMIT_S)
        return Done(words, process.returncode, out, err)

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.communicate()


@pytest.fixture
def make_cluster(make_hosts, tmp_path: Path, need_tool) -> Iterator[Callable[[int], Cluster]]:
    made: list[Cluster] = []

    def make(count: int) -> Cluster:
        made.append(Cluster(make_hosts(count), tmp_path, need_tool("ruedarun")))
        return made[-1]

    try:
        yield make
    finally:
        for cluster in made:
            cluster.close()


# ---- By ssh --------------------------------------------------------------------


def test_ranks_of_three_hosts_meet(make_cluster) -> None:
    cluster = make_cluster(3)
    done = cluster.run("-np", "5", "-H", cluster.slots(2, 1, 2), *TELLING)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"[{rank}]<stdout>:rank {rank} of 5: the sum is 15" for rank in range(5)
    ]
    check_way("shm+tcp", done.stderr, 5)


def test_the_launcher_need_not_be_a_host_of_the_job(make_cluster) -> None:
    cluster = make_cluster(3)
    script = "echo $(hostname) $LR $RUEDA_RANK $HOROVOD_CROSS_RANK $(pwd) ${RUEDA_KEY_FILE-no}"
    done = cluster.run("-np", "2", "-H", cluster.slots(0, 1, 1), "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"[0]<stdout>:host1 0.1 0 0 {os.getcwd()} no",
        f"[1]<stdout>:host2 0.1 1 1 {os.getcwd()} no",
    ]


def test_hosts_whose_networks_have_other_names(make_cluster) -> None:
    """And a bridge of Docker's on each, with the same address everywhere."""
    cluster = make_cluster(2)
    for host, name in enumerate(["eno1", "enp3s0"]):
        space = cluster.hosts.name(host)
        ip("-n", space, "link", "set", "eth0", "down")
        ip("-n", space, "link", "set", "eth0", "name", name, "up")
        ip("-n", space, "link", "add", "docker0", "type", "bridge")
        ip("-n", space, "address", "add", "172.17.0.1/16", "dev", "docker0")
        ip("-n", space, "link", "set", "docker0", "up")
    done = cluster.run("-np", "4", "-H", cluster.slots(2, 2), *TELLING)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("of 4: the sum is 10\n") == 4
    check_way("shm+tcp", done.stderr, 4)


def add_cable(cluster: Cluster, names: list[str]) -> None:
    """A second one between hosts 0 and 1, at 10.78.0.1 and 10.78.0.2."""
    spaces = [cluster.hosts.name(host) for host in range(2)]
    ip("-n", spaces[0], "link", "add", names[0], "type", "veth",
       "peer", "name", names[1], "netns", spaces[1])  # fmt: skip
    for host, name in enumerate(names):
        ip("-n", spaces[host], "address", "add", f"10.78.0.{host + 1}/24", "dev", name)
        ip("-n", spaces[host], "link", "set", name, "up")


INTERFACES = "echo $HOROVOD_GLOO_IFACE $NCCL_SOCKET_IFNAME ${RUEDA_NETWORK-none}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        # Others may be there, but this one leads to the launcher.
        ([], ["eth0 eth0 all", "eth0 eth0 all"]),
        # The user's wish, also where it is no name.
        (["--network-interfaces", "fast,ib7"], ["fast fast,ib7 fast,ib7"] * 2),
        (["--network-interfaces", "10.78.0.0/16"],
         ["fast fast 10.78.0.0/16", "ib7 ib7 10.78.0.0/16"]),
    ],
    ids=["found", "names", "network"],
)  # fmt: skip
def test_interfaces_are_told(make_cluster, options: list[str], said: list[str]) -> None:
    cluster = make_cluster(2)
    add_cable(cluster, ["fast", "ib7"])
    words = ["-np", "2", "-H", cluster.slots(1, 1), *options]
    done = cluster.run(*words, "sh", "-c", INTERFACES)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"[{rank}]<stdout>:{text}" for rank, text in enumerate(said)
    ]
    done = cluster.run(*words, *TELLING)
    assert done.stdout.count("of 2: the sum is 3\n") == 2
    check_way("shm+tcp", done.stderr, 2)


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_mpirun_may_start_ranks_of_several_hosts(make_cluster, need_tool, name: str) -> None:
    """They are told that it is MPI, as Horovod's are."""
    cluster = make_cluster(2)
    mpirun = cluster.folder / "mpirun"
    mpirun.write_text(f'#!/bin/sh\nexec {need_tool(f"mpirun.{name}")} "$@"\n')
    mpirun.chmod(0o755)
    # MPICH calls the launcher by a name that the other host would have to know.
    words = ["-np", "2", "--mpi", "-H", cluster.slots(1, 1), "--network-interfaces", "eth0"]
    script = "echo $(hostname) $HOROVOD_CONTROLLER $HOROVOD_CPU_OPERATIONS $HOROVOD_CYCLE_TIME"
    done = cluster.run(*words, "--cycle-time-ms", "4", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert all(f"host{host} mpi mpi 4\n" in done.stdout for host in range(2)), done.stdout
    done = cluster.run(*words, *TELLING)
    assert done.stdout.count("of 2: the sum is 3\n") == 2, done.stderr
    check_way("shm+tcp", done.stderr, 2)


def test_kubeflow_has_a_shell_of_its_own(make_cluster) -> None:
    cluster = make_cluster(2)
    process = subprocess.run(
        cluster.hosts.command(0, cluster.program, "-np", "1", "-H", cluster.slots(0, 1),
                              "--verbose", "true"),
        capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
        env=environment(OMPI_MCA_plm_rsh_agent="/etc/mpi/kubexec.sh"),
    )  # fmt: skip
    host = cluster.hosts.ipv4(1)
    assert f"ruedarun: {host}: /etc/mpi/kubexec.sh {host} exec /bin/sh -c" in process.stderr


def test_progress_is_shown_on_a_terminal(make_cluster) -> None:
    cluster = make_cluster(2)
    cluster.use_for_ssh('sleep 0.3\nexec $ssh "$@"\n')
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        cluster.hosts.command(0, cluster.program, "-np", "2", "-H", cluster.slots(1, 1), "true"),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
        env=environment(PATH=f"{cluster.folder}:{os.environ['PATH']}", TERM="xterm"),
    )  # fmt: skip
    try:
        assert process.wait(LIMIT_S) == 0
        assert b"1 of 2 hosts are there" in os.read(ours, 10000)
    finally:
        process.kill()
        process.wait()
        os.close(theirs)
        os.close(ours)


def test_ssh_gets_the_users_options(make_cluster) -> None:
    cluster = make_cluster(2)
    cluster.use_for_ssh(f'echo "$@" >{cluster.folder}/words\nexec $ssh "$@"\n')
    done = cluster.run("-np", "1", "-H", cluster.slots(0, 1), "-p", "2222",
                       "--ssh-identity-file", "/my key", "true")  # fmt: skip
    assert done.returncode == 0, done.stderr
    words = (cluster.folder / "words").read_text()
    assert words.startswith(
        f"-oBatchMode=yes -oServerAliveInterval=10 -p2222 -i/my key {cluster.hosts.ipv4(1)} exec "
    )


def test_what_a_shell_says_first_does_no_harm(make_cluster) -> None:
    cluster = make_cluster(2)
    cluster.use_for_ssh('echo Welcome to this host; echo motd >&2\nexec $ssh "$@"\n')
    done = cluster.run("-np", "2", "-H", cluster.slots(1, 1), "echo", "x")
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["[0]<stdout>:x", "[1]<stdout>:x"])


def test_each_host_that_fails_has_one_line(make_cluster) -> None:
    cluster = make_cluster(4)
    mark = cluster.folder / "started"
    cluster.use_for_ssh(
        'case "$*" in\n'
        f"*{cluster.hosts.ipv4(1)}*) echo Connection refused >&2; exit 255;;\n"
        f"*{cluster.hosts.ipv4(2)}*) echo This account is closed; exit 1;;\n"
        'esac\nexec $ssh "$@"\n'
    )
    done = cluster.run("-np", "4", "-H", cluster.slots(1, 1, 1, 1), "touch", str(mark))
    assert done.returncode == 1
    assert sorted(done.stderr.splitlines()) == [
        f"ruedarun: {cluster.hosts.ipv4(1)}: Connection refused",
        f"ruedarun: {cluster.hosts.ipv4(2)}: no agent, but: This account is closed",
    ]
    assert not mark.exists()


def test_a_host_that_hangs_is_named_in_time(make_cluster) -> None:
    cluster = make_cluster(2)
    cluster.use_for_ssh(f"echo $$ >{cluster.folder}/id\nexec sleep 600\n")
    done = cluster.run("-np", "2", "-H", cluster.slots(1, 1), "--start-timeout", "1", "true")
    assert done.returncode == 1
    assert f"{cluster.hosts.ipv4(1)}: did not come within 1 seconds" in done.stderr
    assert not any(is_alive(process) for process in read_ids(cluster.folder, 1))


def test_a_failure_there_is_told_here(make_cluster) -> None:
    cluster = make_cluster(2)
    script = "[ $RUEDA_RANK = 1 ] || exec sleep 600; echo Oh no >&2; exit 9"
    done = cluster.run("-np", "2", "-H", cluster.slots(1, 1), "sh", "-c", script)
    assert done.returncode == 9
    assert f"rank 1 on {cluster.hosts.ipv4(1)} ended with exit code 9" in done.stderr
    assert "    Oh no\n" in done.stderr


def test_a_command_that_is_not_there_is_told(make_cluster) -> None:
    cluster = make_cluster(2)
    done = cluster.run("-np", "1", "-H", cluster.slots(0, 1), "no-such-command")
    assert done.returncode == 2
    assert done.stderr == (
        f"ruedarun: {cluster.hosts.ipv4(1)}: cannot run 'no-such-command': "
        "there is no such program on the PATH\n"
    )


def test_nothing_is_started_where_one_host_cannot(make_cluster) -> None:
    cluster = make_cluster(3)
    mark = cluster.folder / "started"
    program = cluster.folder / "bin" / "program"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho x >>{mark}\n")
    program.chmod(0o755)
    # On host 1 that folder is empty.
    hide = f'mount -t tmpfs none {program.parent} && exec "$0" "$@"'
    cluster.use_for_ssh(
        f'case "$*" in *{cluster.hosts.ipv4(1)}*)\n'
        f"exec unshare --mount sh -c '{hide}' $ssh \"$@\";;\nesac\n"
        'exec $ssh "$@"\n'
    )
    words = ["-np", "9", "-H", cluster.slots(4, 1, 4)]
    for _ in range(3):
        done = cluster.run(*words, str(program))
        assert (done.returncode, done.stdout, done.stderr) == (
            2, "", f"ruedarun: {cluster.hosts.ipv4(1)}: cannot run '{program}': "
            "No such file or directory\n",
        )  # fmt: skip
    assert not mark.exists()
    assert cluster.run(*words, "echo", "x").stdout.count("x\n") == 9


def test_a_host_that_hangs_before_it_is_prepared_is_named(make_cluster) -> None:
    """Its agent is there, but after the key (44 bytes) it hears nothing."""
    cluster = make_cluster(3)
    cluster.use_for_ssh(
        f'case "$*" in *{cluster.hosts.ipv4(1)}*)\n'
        '{ head -c 44; exec sleep 600; } | $ssh "$@";;\n*) exec $ssh "$@";;\nesac\n'
    )
    done = cluster.run("-np", "3", "-H", cluster.slots(1, 1, 1), "--start-timeout", "2",
                       "echo", "x")  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"ruedarun: {cluster.hosts.ipv4(1)}: did not come within 2 seconds; more time is given by "
        "--start-timeout\n"
    )


def start_stubborn(cluster: Cluster) -> tuple[subprocess.Popen[str], list[int]]:
    """Ranks on hosts 0 and 1, with their children."""
    folder = cluster.folder / "ids"
    folder.mkdir()
    process = cluster.start("-np", "2", "-H", cluster.slots(1, 1), "--grace", "0.5",
                            sys.executable, STUBBORN, str(folder))  # fmt: skip
    return process, read_ids(folder, 6)


def agents_there(process: int) -> list[int]:
    """Below the launcher: what stands in for ssh, the guardian, the agent."""
    words = [(child, Path(f"/proc/{child}/cmdline").read_bytes()) for child in children_of(process)]
    (guardian,) = (child for child, line in words if b"--stdio" in line)
    return [guardian, *children_of(guardian)]


def test_nothing_survives_the_launcher_on_any_host(make_cluster) -> None:
    process, ranks = start_stubborn(make_cluster(2))
    process.kill()
    assert wait_until(lambda: not any(is_alive(rank) for rank in ranks))


@pytest.mark.parametrize("victim", [0, 1], ids=["guardian", "agent"])
def test_nothing_survives_an_agent_there(make_cluster, victim: int) -> None:
    process, ranks = start_stubborn(make_cluster(2))
    os.kill(agents_there(process.pid)[victim], signal.SIGKILL)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert ("its agent was told to end", "was lost with its agent")[victim] in err
    assert wait_until(lambda: not any(is_alive(rank) for rank in ranks))


def test_many_hosts_start_at_a_time(make_cluster) -> None:
    """200 hosts, which are all this one."""
    cluster = make_cluster(1)
    cluster.use_for_ssh(
        'while [ "${1#-}" != "$1" ]; do shift; done\nexport HOST=$1; shift\n'
        'sleep 0.5\neval "$*"\n'
    )
    hosts = ",".join(f"10.99.0.{i}:1" for i in range(200))
    began = time.monotonic()
    done = cluster.run("-np", "200", "-H", hosts, "sh", "-c", "echo $HOST $RUEDA_CROSS_SIZE")
    took = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        f"[{i}]<stdout>:10.99.0.{i} 200" for i in range(200)
    )
    assert took < 50, "one after the other they take 100 seconds"


# ---- The standard input --------------------------------------------------------


def test_the_input_goes_to_rank_0_there(make_cluster) -> None:
    """More than any buffer holds, from a file and through a pipe, to a rank that reads late."""
    cluster = make_cluster(2)
    data = bytes(range(256)) * 20000
    file = cluster.folder / "data"
    file.write_bytes(data)
    expected, nothing = (
        subprocess.run(["cksum"], input=text, capture_output=True, timeout=LIMIT_S).stdout
        for text in (data, b"")
    )
    for slots in (cluster.slots(1, 1), f"{cluster.slots(0, 1)},{cluster.slots(1)}"):
        words = cluster.hosts.command(0, cluster.program, "-np", "2", "-H", slots,
                                      "sh", "-c", "sleep 0.5; cksum")  # fmt: skip
        for form in ('exec "$@" <"$0"', 'cat "$0" | "$@"'):
            done = subprocess.run(
                ["sh", "-c", form, str(file), *words], capture_output=True, timeout=LIMIT_S,
                env=environment(PATH=f"{cluster.folder}:{os.environ['PATH']}"),
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert sorted(done.stdout.splitlines(True)) == [
                b"[0]<stdout>:" + expected, b"[1]<stdout>:" + nothing,
            ]  # fmt: skip


def test_input_that_nobody_reads_does_no_harm(make_cluster) -> None:
    cluster = make_cluster(2)
    words = cluster.hosts.command(0, cluster.program, "-np", "1", "-H", cluster.slots(0, 1),
                                  "head", "-n", "1")  # fmt: skip
    endless = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
    try:
        done = subprocess.run(
            words, stdin=endless.stdout, capture_output=True, text=True, timeout=LIMIT_S,
            env=environment(PATH=f"{cluster.folder}:{os.environ['PATH']}"),
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "[0]<stdout>:y\n"), done.stderr
    finally:
        endless.kill()
        endless.communicate()


# ---- By real ssh ---------------------------------------------------------------


def answers(cluster: Cluster, host: int) -> bool:
    """Does a process listen at the port of ssh?"""
    knock = cluster.hosts.command(0, "bash", "-c", f": </dev/tcp/{cluster.hosts.ipv4(host)}/22")
    return subprocess.run(knock, stderr=subprocess.DEVNULL, timeout=LIMIT_S).returncode == 0


@contextmanager
def real_ssh(cluster: Cluster, need_tool: Callable[[str], str]) -> Iterator[list[str]]:
    """The system's ssh, with an sshd on host 1 alone; gives the words that take the user's key."""
    need_tool("ssh-keygen")
    if not Path("/usr/sbin/sshd").exists():
        pytest.skip("missing tool: sshd")
    folder = cluster.folder
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)],
                       check=True, timeout=LIMIT_S)  # fmt: skip
    known = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"{cluster.hosts.ipv4(1)} {known}")
    (folder / "ssh").write_text(
        f"#!/bin/sh\nexec /usr/bin/ssh -oUserKnownHostsFile={folder}/known"
        f' -oIdentitiesOnly=yes -F none "$@"\n'
    )
    (folder / "config").write_text(
        f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\nStrictModes no\n"
        "PidFile none\nUsePAM no\nPermitRootLogin yes\n"
    )
    server = subprocess.Popen(
        cluster.hosts.command(1, "/usr/sbin/sshd", "-D", "-f", str(folder / "config")),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert wait_until(lambda: answers(cluster, 1))
        yield ["-i", str(folder / "user")]
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def ssh_cluster(make_cluster, need_tool) -> Iterator[Cluster]:
    """Three hosts, of which host 1 has an sshd."""
    cluster = make_cluster(3)
    with real_ssh(cluster, need_tool) as cluster.identity:
        yield cluster


def test_real_ssh(ssh_cluster: Cluster) -> None:
    slots = ssh_cluster.slots(1, 2)
    done = ssh_cluster.run("-np", "3", "-H", slots, *ssh_cluster.identity, *TELLING)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("of 3: the sum is 6\n") == 3
    check_way("shm+tcp", done.stderr, 3)


def test_the_way_of_ssh_is_the_launchers_interface(ssh_cluster: Cluster) -> None:
    """As sshd sees it; not the first one that the launcher's host has."""
    cluster = ssh_cluster
    add_cable(cluster, ["fast", "ib7"])
    known = cluster.folder / "known"
    known.write_text(known.read_text().replace(cluster.hosts.ipv4(1), "10.78.0.2"))
    done = cluster.run("-np", "2", "-H", f"{cluster.hosts.ipv4(0)}:1,10.78.0.2:1",
                       *cluster.identity, "sh", "-c", INTERFACES)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "[0]<stdout>:fast fast all", "[1]<stdout>:ib7 ib7 all",
    ]  # fmt: skip


def test_a_host_that_refuses(ssh_cluster: Cluster) -> None:
    slots = ssh_cluster.slots(1, 1, 1)
    done = ssh_cluster.run("-np", "3", "-H", slots, *ssh_cluster.identity, "true")
    assert done.returncode == 1
    refusal = f"ruedarun: {ssh_cluster.hosts.ipv4(2)}: ssh: connect to host"
    assert [line.startswith(refusal) for line in done.stderr.splitlines()] == [True]
    assert "Connection refused" in done.stderr


def test_a_host_whose_key_is_strange(ssh_cluster: Cluster) -> None:
    """Horovod would take it."""
    (ssh_cluster.folder / "known").write_text("")
    slots = ssh_cluster.slots(1, 1)
    done = ssh_cluster.run("-np", "2", "-H", slots, *ssh_cluster.identity, "true")
    assert done.returncode == 1
    assert "Host key verification failed" in done.stderr


def test_a_host_that_answers_the_call_and_hangs(ssh_cluster: Cluster) -> None:
    mute = subprocess.Popen(
        ssh_cluster.hosts.command(2, sys.executable, program("hold_port.py"), "", "22"),
        stdin=subprocess.PIPE,
    )
    try:
        assert wait_until(lambda: answers(ssh_cluster, 2))
        done = ssh_cluster.run("-np", "3", "-H", ssh_cluster.slots(1, 1, 1), *ssh_cluster.identity,
                               "--start-timeout", "2", "true")  # fmt: skip
        assert done.returncode == 1
        assert done.stderr.splitlines() == [
            f"ruedarun: {ssh_cluster.hosts.ipv4(2)}: did not come within 2 seconds; more time is "
            "given by --start-timeout"
        ]
    finally:
        mute.kill()
        mute.wait()


def test_a_host_that_dies_in_the_middle(ssh_cluster: Cluster, tmp_path: Path) -> None:
    """All of its processes at once, sshd's too: ssh sees its connection end."""
    folder = tmp_path / "ids"
    folder.mkdir()
    process = ssh_cluster.start("-np", "2", "-H", ssh_cluster.slots(1, 1), "--grace", "0.5",
                                *ssh_cluster.identity, sys.executable, STUBBORN,
                                str(folder))  # fmt: skip
    ranks = read_ids(folder, 6)
    there = subprocess.run(["ip", "netns", "pids", ssh_cluster.hosts.name(1)], check=True,
                           capture_output=True, text=True, timeout=LIMIT_S)  # fmt: skip
    subprocess.run(["kill", "-KILL", *there.stdout.split()], timeout=LIMIT_S)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert f"{ssh_cluster.hosts.ipv4(1)} was lost with its agent" in err
    assert wait_until(lambda: not any(is_alive(rank) for rank in ranks))


# ---- Without ssh ---------------------------------------------------------------


def test_agents_may_come_by_themselves(make_cluster, key_file: str) -> None:
    cluster = make_cluster(3)
    where = f"{cluster.hosts.ipv4(0)}:{free_port()}"
    join = ["agent", "--join", where, "--key-file", key_file]
    # One of them is there before the launcher is.
    agents = [cluster.start(*join, "--host", cluster.hosts.ipv4(1), host=1)]
    launcher = cluster.start("-np", "4", "-H", cluster.slots(2, 1, 1), "--listen", where,
                             "--key-file", key_file, *TELLING)  # fmt: skip
    assert launcher.stderr.readline() == (
        f'ruedarun: waiting at {where} for "ruedarun agent --join" of '
        f"{cluster.hosts.ipv4(1)}, {cluster.hosts.ipv4(2)}\n"
    )
    agents.append(cluster.start(*join, "--host", cluster.hosts.ipv4(2), host=2))
    out, err = launcher.communicate(timeout=LIMIT_S)
    assert launcher.returncode == 0, err
    assert out.count("of 4: the sum is 10\n") == 4
    check_way("shm+tcp", err, 4)
    assert [agent.wait(LIMIT_S) for agent in agents] == [0, 0]


@pytest.mark.parametrize(
    ("command", "code"), [(["sh", "-c", "exit 7"], 7), (["no-such-command"], 2)],
    ids=["failed", "refused"],
)  # fmt: skip
def test_how_a_job_ended_is_for_the_launcher_to_tell(
    make_cluster, key_file: str, command: list[str], code: int
) -> None:
    cluster = make_cluster(2)
    where = f"{cluster.hosts.ipv4(0)}:{free_port()}"
    launcher = cluster.start("-np", "1", "-H", cluster.slots(0, 1), "--listen", where, "--key-file",
                             key_file, *command)  # fmt: skip
    agent = cluster.start("agent", "--join", where, "--key-file", key_file, "--host",
                          cluster.hosts.ipv4(1), host=1)  # fmt: skip
    assert (launcher.wait(LIMIT_S), agent.wait(LIMIT_S)) == (code, 0)


def test_the_way_that_agents_took_is_the_launchers_interface(make_cluster, key_file: str) -> None:
    """And not the first that its host has."""
    cluster = make_cluster(2)
    add_cable(cluster, ["fast", "ib7"])
    port = free_port()
    launcher = cluster.start("-np", "2", "-H", cluster.slots(1, 1), "--listen", str(port),
                             "--key-file", key_file, "sh", "-c", INTERFACES)  # fmt: skip
    agent = cluster.start("agent", "--join", f"10.78.0.1:{port}", "--key-file", key_file,
                          "--host", cluster.hosts.ipv4(1), host=1)  # fmt: skip
    out, err = launcher.communicate(timeout=LIMIT_S)
    assert (launcher.returncode, agent.wait(LIMIT_S)) == (0, 0), err
    assert sorted(out.splitlines()) == ["[0]<stdout>:fast fast all", "[1]<stdout>:ib7 ib7 all"]


def test_agents_without_the_key_or_a_place_are_turned_away(
    make_cluster, key_file: str, tmp_path: Path, need_tool
) -> None:
    cluster = make_cluster(2)
    other = tmp_path / "other"
    subprocess.run([need_tool("rueda"), "key", str(other)], check=True, timeout=LIMIT_S)
    where = f"{cluster.hosts.ipv4(0)}:{free_port()}"
    launcher = cluster.start("-np", "1", "-H", "node7:1", "--listen", where, "--key-file",
                             key_file, "hostname")  # fmt: skip
    launcher.stderr.readline()
    agent = cluster.start("agent", "--join", where, "--key-file", str(other), host=1)
    _, err = agent.communicate(timeout=LIMIT_S)
    assert agent.returncode == 1
    assert "do not agree" in err
    assert "the launcher refused a caller from" in launcher.stderr.readline()
    agent = cluster.start("agent", "--join", where, "--key-file", key_file, host=1)
    _, err = agent.communicate(timeout=LIMIT_S)
    assert agent.returncode == 1
    assert "the launcher waits for no host 'host1'" in err
    agent = cluster.start("agent", "--join", where, "--key-file", key_file, "--host", "node7",
                          host=1)  # fmt: skip
    out, err = launcher.communicate(timeout=LIMIT_S)
    assert (launcher.returncode, out) == (0, "[0]<stdout>:host1\n"), err
    assert agent.wait(LIMIT_S) == 0


def test_strangers_at_the_launchers_door_harm_nobody(make_cluster, key_file: str) -> None:
    """Nor do a thousand of them, who stay while an agent comes."""
    cluster = make_cluster(3)
    hosts, port = cluster.hosts, free_port()
    where = f"{hosts.ipv4(0)}:{port}"
    launcher = cluster.start("-np", "1", "-H", cluster.slots(0, 1), "--listen", where,
                             "--key-file", key_file, "hostname")  # fmt: skip
    said = [launcher.stderr.readline()]
    for kind in ("http", "version", "scanner"):
        call(hosts, kind, port)
    words = [hosts.ipv4(0), str(port), "30"]
    crowd = subprocess.Popen(hosts.command(2, sys.executable, STRANGER, "flood", *words))
    try:
        while "many others connect" not in said[-1]:
            said.append(launcher.stderr.readline())
            assert said[-1] != "", said
        agent = cluster.start("agent", "--join", where, "--key-file", key_file, "--host",
                              hosts.ipv4(1), host=1)  # fmt: skip
        out, err = launcher.communicate(timeout=LIMIT_S)
        assert agent.wait(LIMIT_S) == 0
    finally:
        crowd.kill()
        crowd.wait()
    assert (launcher.returncode, out) == (0, "[0]<stdout>:host1\n"), err
    said += err.splitlines()
    for kind in ("http", "version", "scanner", "flood"):
        assert sum(WORDS[kind] in line for line in said) == 1, said
    assert len(said) < 10, said


def test_a_key_that_is_not_there_is_made(make_cluster, tmp_path: Path) -> None:
    cluster = make_cluster(1)
    key = tmp_path / "new.key"
    words = ["-np", "1", "-H", cluster.slots(1), "--listen", str(free_port()),
             "--key-file", str(key), "true"]  # fmt: skip
    done = cluster.run(*words)
    assert done.returncode == 0, done.stderr
    assert f"made a key in {key}" in done.stderr
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_text()
    assert "made a key" not in cluster.run(*words).stderr
    assert key.read_text() == before


def test_a_launcher_that_needs_no_agent_waits_for_none(make_cluster, key_file: str) -> None:
    cluster = make_cluster(1)
    done = cluster.run("-np", "1", "-H", cluster.slots(1), "--listen", str(free_port()),
                       "--key-file", key_file, "echo", "x")  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0]<stdout>:x\n", "")


def test_the_launchers_name_may_come_late(make_cluster, key_file: str) -> None:
    """As with a service that is made after the agents."""
    cluster = make_cluster(2)
    names = Path("/etc/netns", cluster.hosts.name(1), "hosts")  # its /etc/hosts, for ip netns exec
    names.parent.mkdir(parents=True)
    try:
        names.write_text("127.0.0.1 localhost\n")
        port = free_port()
        agent = cluster.start("agent", "--join", f"launcher.invalid:{port}", "--key-file", key_file,
                              "--host", cluster.hosts.ipv4(1), host=1)  # fmt: skip
        launcher = cluster.start("-np", "1", "-H", cluster.slots(0, 1), "--listen", str(port),
                                 "--key-file", key_file, "hostname")  # fmt: skip
        launcher.stderr.readline()
        time.sleep(0.5)
        assert agent.poll() is None
        names.write_text(f"{cluster.hosts.ipv4(0)} launcher.invalid\n")
        out, err = launcher.communicate(timeout=LIMIT_S)
        assert (launcher.returncode, out) == (0, "[0]<stdout>:host1\n"), err
        assert agent.wait(LIMIT_S) == 0
    finally:
        shutil.rmtree(names.parent)


def test_mistakes_of_an_agent_are_one_line(make_cluster, key_file: str) -> None:
    cluster = make_cluster(1)
    key = ["--key-file", key_file]
    for words, reason in (
        ([], "--join HOST:PORT and --key-file FILE are needed"),
        (["--join", "node1", *key], '"node1" is not an address'),
        (["--join", "node1:4000", "--key-file", "/nowhere"], "No such file"),
        (["--join", "node1:4000", *key, "--start-timeout", "0"], "from 1 up, not '0'"),
        (["--jion", "node1:4000"], "did you mean '--join'?"),
    ):
        done = cluster.run("agent", *words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert reason in done.stderr


def test_an_interface_that_is_not_there_is_told(make_cluster) -> None:
    cluster = make_cluster(2)
    slots = cluster.slots(1, 1)
    done = cluster.run("-np", "2", "-H", slots, "--network-interfaces", "eth7", "true")
    assert done.returncode == 2
    assert done.stderr == (
        "ruedarun: this host has no address that others could reach at --network-interfaces eth7\n"
    )


TALKING = "echo $$ >$0/id$$; while sleep 0.05; do echo x; done"


@pytest.mark.parametrize(
    ("command", "count"), [([sys.executable, STUBBORN], 6), (["sh", "-c", TALKING], 2)],
    ids=["quiet", "talking"],
)  # fmt: skip
def test_a_launcher_that_falls_silent_is_not_waited_for(
    make_cluster, key_file: str, tmp_path: Path, command: list[str], count: int
) -> None:
    """Nor a host by the launcher; whether or not anything is on its way between them."""
    cluster = make_cluster(2)
    folder = tmp_path / "ids"
    folder.mkdir()
    where = f"{cluster.hosts.ipv4(0)}:{free_port()}"
    launcher = cluster.start("-np", "2", "-H", cluster.slots(1, 1), "--listen", where, "--key-file",
                             key_file, "--grace", "0.5", *command, str(folder))  # fmt: skip
    agent = cluster.start("agent", "--join", where, "--key-file", key_file, "--host",
                          cluster.hosts.ipv4(1), host=1)  # fmt: skip
    ranks = read_ids(folder, count)
    cluster.hosts.silence(1)
    _, err = launcher.communicate(timeout=LIMIT_S)
    assert launcher.returncode == 1
    assert f"{cluster.hosts.ipv4(1)} was lost with its agent" in err
    assert agent.wait(LIMIT_S) == 1
    assert not any(is_alive(rank) for rank in ranks)
