# SPDX-License-Identifier: Apache-2.0
"""`rueda doctor`: on this host, and on hosts that are network namespaces."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Callable, NamedTuple

import pytest
from cluster import ip
from ranks import Done, environment
from test_ruedarun import is_alive, read_ids
from test_ruedarun_hosts import Cluster, real_ssh

LIMIT_S = 120


class Finding(NamedTuple):
    verdict: str
    value: str
    fix: str | None


class Report:
    """What was printed and what was written, which say the same."""

    def __init__(self, done: Done, path: Path) -> None:
        self.done = done
        self.all = json.loads(path.read_text())
        self.hosts = {host["name"]: self.findings(host["checks"]) for host in self.all["hosts"]}
        self.together = self.findings(self.all["together"])
        self.pairs = {(*pair["hosts"], pair["way"]): pair for pair in self.all["pairs"]}

    def findings(self, checks: list[dict]) -> dict[str, Finding]:
        for check in checks:
            line = f"  {check['verdict']:5} {check['name']:14} {check['value']}\n"
            assert line in self.done.stdout
            if check["verdict"] == "ok":
                assert check["fix"] is None
            else:
                assert f"{line}        fix: {check['fix']}\n" in self.done.stdout
        return {
            check["name"]: Finding(check["verdict"], check["value"], check["fix"])
            for check in checks
        }


@pytest.fixture
def doctor(need_tool: Callable[[str], str], tmp_path: Path) -> Callable[..., Report]:
    """A function that asks the doctor about this host, from a shell with these limits."""
    program = need_tool("rueda")

    def run(limits: str = "true") -> Report:
        path = tmp_path / "report.json"
        done = subprocess.run(
            ["sh", "-c", f'{limits} && exec "$0" doctor --json "$1"', program, str(path)],
            capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
        )  # fmt: skip
        return Report(done, path)

    return run


class Patients(Cluster):
    """Hosts, of which host 0 has the doctor."""

    def examine(self, *words: str) -> Report:
        path = self.folder / "report.json"
        process = self.start("doctor", "--json", str(path), *words)
        out, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode in (0, 1), err
        return Report(Done(words, process.returncode, out, err), path)

    def for_host(self, host: int, script: str) -> None:
        """A shell script for the ssh of one host, before the one that works."""
        self.use_for_ssh(
            f'case "$*" in *{self.hosts.ipv4(host)}*) {script};; esac\nexec $ssh "$@"\n'
        )


@pytest.fixture
def make_patients(make_hosts, tmp_path: Path, need_tool) -> Iterator[Callable[[int], Patients]]:
    made: list[Patients] = []

    def make(count: int) -> Patients:
        made.append(Patients(make_hosts(count), tmp_path, need_tool("rueda")))
        return made[-1]

    try:
        yield make
    finally:
        for patients in made:
            patients.close()


# ---- This host -----------------------------------------------------------------


def test_this_host_is_looked_at(doctor) -> None:
    report = doctor("ulimit -n 4096")
    assert report.done.returncode == 0, report.done.stdout
    assert report.all["bad"] == 0
    found = report.hosts["localhost"]
    assert list(found) == [
        "version", "system", "cpus", "cpu quota", "memory", "shared memory",
        "open files", "locked memory", "gpus", "network",
    ]  # fmt: skip
    assert found["version"].value == report.all["version"]
    assert found["open files"].value.startswith("4096 ")
    assert report.together["key exchange"].verdict == "ok"
    assert set(report.pairs) == {("localhost", "localhost", way) for way in ("shm", "tcp")}
    for pair in report.pairs.values():
        assert pair["latency_us"] > 0
        assert pair["bandwidth_gb_s"] > 0
    assert re.search(r"\n(all is well|0 would stop a job, \d+ warnings?)\n$", report.done.stdout)


def test_what_is_measured_inside_a_host_is_what_training_gets(need_tool) -> None:
    """The allreduce through shared memory, and not messages."""
    ranks = [
        subprocess.Popen(
            [need_tool("rueda"), "doctor", "--meet"], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(RUEDA_RANK=str(rank), RUEDA_SIZE="2", RUEDA_LOG_LEVEL="trace",
                            RUEDA_JOB="measured"),
        )
        for rank in range(2)
    ]  # fmt: skip
    said = [rank.communicate(timeout=LIMIT_S)[1] for rank in ranks]
    for one in said:
        assert re.search(r"allreduce number \d+ of set \d+, 4194304 bytes, runs as direct", one)


def test_too_few_files_are_named_with_the_fix(doctor) -> None:
    report = doctor("ulimit -n 25")
    assert report.done.returncode == 1
    found = report.hosts["localhost"]["open files"]
    assert found.verdict == "bad"
    assert found.value.startswith("25 (up to 25)")
    assert "ulimit -n 65536" in found.fix


def test_too_few_addresses_are_named_with_the_fix(doctor) -> None:
    report = doctor("ulimit -v 8000000")
    found = report.hosts["localhost"]["shared memory"]
    assert found.verdict == "warn"
    assert "ulimit -v unlimited" in found.fix
    assert "start" not in report.together, report.together  # ranks make do with fewer


def test_a_report_that_cannot_be_written_is_told(need_tool) -> None:
    done = subprocess.run(
        [need_tool("rueda"), "doctor", "--json", "/no/such/folder/x"],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    assert done.returncode == 1
    assert "cannot write /no/such/folder/x: No such file" in done.stderr


# ---- Several hosts ---------------------------------------------------------------


def test_all_hosts_meet_all(make_patients) -> None:
    patients = make_patients(3)
    names = [patients.hosts.ipv4(i) for i in range(3)]
    report = patients.examine("-H", patients.slots(2, 2, 2))
    assert report.done.returncode == 0, report.done.stdout
    assert list(report.hosts) == names
    assert "ssh" not in report.hosts[names[0]]
    assert report.hosts[names[1]]["ssh"].value.startswith("answered in ")
    assert report.together["key exchange"].value.startswith("all 6 ranks")
    assert set(report.pairs) == {
        *((name, name, way) for name in names for way in ("shm", "tcp")),
        *((a, b, "tcp") for i, a in enumerate(names) for b in names[i + 1 :]),
    }
    for name in names[1:]:
        clock = report.hosts[name]["clock"]
        offset = re.match(r"([-+][\d.]+) ms against 10\.77\.0\.1", clock.value)
        assert offset is not None
        assert abs(float(offset.group(1))) < 50, "it is one clock"
        assert clock.verdict == "ok"


def test_the_doctor_need_not_be_on_a_host_of_the_job(make_patients) -> None:
    patients = make_patients(2)
    hostfile = patients.folder / "hosts"
    hostfile.write_text(f"{patients.hosts.ipv4(1)} slots=1\n")
    report = patients.examine("--hostfile", str(hostfile))
    assert report.done.returncode == 0, report.done.stdout
    assert list(report.hosts) == [patients.hosts.ipv4(1)]
    assert len(report.pairs) == 2


def test_a_host_that_fails_stops_nobody_else(make_patients) -> None:
    patients = make_patients(4)
    names = [patients.hosts.ipv4(i) for i in range(4)]
    patients.use_for_ssh(
        'case "$*" in\n'
        f"*{names[1]}*) echo 'Permission denied (publickey).' >&2; exit 255;;\n"
        f"*{names[2]}*) echo $$ >{patients.folder}/id; exec sleep 600;;\n"
        'esac\nexec $ssh "$@"\n'
    )
    report = patients.examine("-H", patients.slots(1, 1, 1, 1), "--timeout", "4")
    assert report.done.returncode == 1
    denied, late = report.hosts[names[1]]["ssh"], report.hosts[names[2]]["ssh"]
    assert denied == ("bad", "Permission denied (publickey).", denied.fix)
    assert f"ssh-copy-id {names[1]}" in denied.fix
    assert late.verdict == "bad"
    assert late.value == "no answer within 4 s"
    assert not any(is_alive(process) for process in read_ids(patients.folder, 1))
    assert report.pairs[(names[0], names[3], "tcp")]["bandwidth_gb_s"] > 0
    assert report.all["bad"] == 2


def test_what_is_not_installed_there_is_told(make_patients) -> None:
    patients = make_patients(2)
    patients.for_host(1, "echo '/bin/sh: 1: exec: rueda: not found' >&2; exit 127")
    report = patients.examine("-H", patients.slots(1, 1))
    found = report.hosts[patients.hosts.ipv4(1)]["ssh"]
    assert found.verdict == "bad"
    assert "install rueda" in found.fix


def test_another_version_there_is_told(make_patients) -> None:
    patients = make_patients(2)
    patients.for_host(1, '$ssh "$@" | sed "s/\\(version.ok.\\)[0-9.]*/\\10.0.9/"; exit')
    report = patients.examine("-H", patients.slots(1, 1))
    assert report.done.returncode == 1
    found = report.hosts[patients.hosts.ipv4(1)]["version"]
    assert (found.verdict, found.value) == ("bad", "0.0.9")
    assert f"install the same version as here, {report.all['version']}" in found.fix
    assert set(report.pairs) == {(patients.hosts.ipv4(0),) * 2 + (way,) for way in ("shm", "tcp")}


def test_limits_there_are_found(make_patients) -> None:
    patients = make_patients(2)
    patients.for_host(1, "ulimit -n 100")
    report = patients.examine("-H", patients.slots(16, 64))
    mine, theirs = (report.hosts[patients.hosts.ipv4(i)]["open files"] for i in range(2))
    assert theirs.verdict == "bad"
    assert theirs.value.startswith("100 (up to 100)")
    assert "limits.conf" in theirs.fix
    assert not mine.value.startswith("100 ")


def test_different_longest_packets_are_named(make_patients) -> None:
    patients = make_patients(2)
    ip("-n", patients.hosts.name(1), "link", "set", "eth0", "mtu", "1400")
    report = patients.examine("-H", patients.slots(1, 1))
    assert report.done.returncode == 0, report.done.stdout
    found = report.hosts[patients.hosts.ipv4(1)]["mtu"]
    assert found.verdict == "warn"
    assert found.value.startswith("eth0 has 1400, but eth0 of 10.77.0.1 on the same network")
    assert "ip link set dev eth0 mtu 1400" in found.fix


def test_packets_too_long_for_the_way_are_named(make_patients) -> None:
    patients = make_patients(2)
    patients.hosts.set_mtu(hosts=9000, ports=1500)
    report = patients.examine("-H", patients.slots(1, 1))
    assert report.done.returncode == 1
    assert "is the MTU of an interface too large for the way?" in report.together["pairs"].value
    assert "mtu 1500" in report.together["pairs"].fix
    pair = report.pairs[(patients.hosts.ipv4(0), patients.hosts.ipv4(1), "tcp")]
    assert pair["verdict"] == "bad"
    assert pair["latency_us"] > 0


def test_a_wall_between_two_hosts_hides_nothing_else(make_patients) -> None:
    """Host 2 can be asked by ssh, but does not reach the launcher."""
    patients = make_patients(3)
    names = [patients.hosts.ipv4(i) for i in range(3)]
    there = patients.hosts.name(2)
    ip("-n", there, "route", "add", "blackhole", f"{names[0]}/32")
    ip("-n", there, "-6", "route", "add", "blackhole", f"{patients.hosts.ipv6(0)}/128")
    report = patients.examine("-H", patients.slots(1, 1, 1))
    assert report.done.returncode == 1
    assert f"{names[2]}: cannot reach the launcher" in report.together["start"].value
    assert report.pairs[(names[0], names[1], "tcp")]["bandwidth_gb_s"] > 0
    walled = report.pairs[(names[0], names[2], "tcp")]
    assert walled["verdict"] == "bad"
    assert walled["latency_us"] is None
    assert "cannot reach" in walled["failure"]
    assert "let TCP pass" in walled["fix"]


def test_real_ssh(make_patients, need_tool) -> None:
    """Host 2 has no sshd."""
    patients = make_patients(3)
    with real_ssh(patients, need_tool) as identity:
        report = patients.examine("-H", patients.slots(1, 1, 1), *identity)
    assert report.done.returncode == 1
    assert report.hosts[patients.hosts.ipv4(1)]["ssh"].verdict == "ok"
    refused = report.hosts[patients.hosts.ipv4(2)]["ssh"]
    assert refused.verdict == "bad"
    assert refused.value.endswith("port 22: Connection refused")
    assert f"start sshd on {patients.hosts.ipv4(2)}" in refused.fix
    assert (patients.hosts.ipv4(0), patients.hosts.ipv4(1), "tcp") in report.pairs
