# SPDX-License-Identifier: Apache-2.0
"""The names of Horovod 0.28.1: those that the list calls the same are there and work."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from ranks import environment

LIMIT_S = 120
LISTS = (Path(__file__).parent / "data").glob("horovod_names_*.tsv")
ROWS = [
    line.split("\t")
    for file in sorted(LISTS)
    for line in file.read_text().splitlines()
    if not line.startswith("#")
]
PARTS = ["common", "data", "keras", "runner", "tensorflow", "torch", "-"]


def frameworks_of(module: str) -> list[str]:
    words = module.split(".")
    return [name for name in ("torch", "tensorflow", "keras") if name in words]


@pytest.mark.parametrize("part", PARTS)
def test_names_that_are_the_same_are_there(part: str) -> None:
    wrong = []
    for module, name, verdict, arguments, _ in ROWS:
        words = module.split(".")
        if verdict == "absent" or (words[1] if words[1:] else "-") != part:
            continue
        for framework in frameworks_of(module):
            pytest.importorskip(framework)
        home = importlib.import_module(module)
        if name == "-":
            continue
        if not hasattr(home, name):
            wrong.append(f"{module}.{name}")
        elif arguments != "-":
            taken = inspect.signature(getattr(home, name)).parameters
            if not any(one.kind == one.VAR_KEYWORD for one in taken.values()):
                missing = set(arguments.split(",")) - set(taken)
                wrong += [f"{module}.{name}({one})" for one in missing]
    assert wrong == []


def is_a_part_of(module: str, package: str | None) -> bool:
    return f"{module}.".startswith(f"{package}.")


@pytest.mark.parametrize("part", PARTS)
def test_names_that_are_absent_are_not_there(part: str) -> None:
    wrong, unknown = [], set()
    for module, name, verdict, _, _ in ROWS:
        words = module.split(".")
        home_part = words[1] if words[1:] and words[1] in PARTS else "-"
        if verdict != "absent" or home_part != part:
            continue
        try:
            home = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if not is_a_part_of(module, error.name):
                assert error.name in frameworks_of(module), error
                unknown.add(error.name)
            continue
        if name == "-" or hasattr(home, name):
            wrong.append(f"{module}.{name}")
    assert wrong == []
    for framework in unknown:
        pytest.skip(f"missing tool: {framework}")


def test_every_name_has_a_verdict_and_others_a_reason() -> None:
    assert len(ROWS) > 1000
    assert all(len(row) == 5 for row in ROWS)
    assert {row[2] for row in ROWS} == {"same", "differs", "absent"}
    assert [row[:2] for row in ROWS if row[2] != "same" and len(row[4]) < 10] == []
    assert sum(row[2] == "same" for row in ROWS) > 500


def test_what_is_not_there_names_the_way_to_the_same_end() -> None:
    from horovod.runner.driver.driver_service import get_common_interfaces
    from horovod.runner.elastic.driver import ElasticDriver

    with pytest.raises(NotImplementedError, match="--network-interfaces limits them"):
        get_common_interfaces(None, [])
    with pytest.raises(NotImplementedError, match="horovodrun --min-np"):
        ElasticDriver(None, None, 1, 2)


def test_places_are_those_of_ruedarun() -> None:
    from horovod.runner.common.util import hosts

    places = hosts.get_host_assignments(hosts.parse_hosts("a:3,b:1,c:2"), 6)
    assert [place.hostname for place in places] == ["a", "a", "a", "b", "c", "c"]
    assert [place.local_rank for place in places] == [0, 1, 2, 0, 0, 1]
    assert [place.cross_rank for place in places] == [0, 0, 0, 1, 2, 1]
    assert [place.cross_size for place in places] == [3, 2, 1, 3, 3, 2]
    assert len(hosts.get_host_assignments(hosts.parse_hosts("a:3,b:1"), 1, 2)) == 2
    with pytest.raises(ValueError, match="Requested more processes"):
        hosts.get_host_assignments(hosts.parse_hosts("a:1"), 2)
    with pytest.raises(ValueError, match="Invalid host input"):
        hosts.parse_hosts_and_slots("a")


def test_keys_times_and_objects() -> None:
    from horovod.runner.common.util import codec, secret, timeout

    key = secret.make_secret_key()
    digest = secret.compute_digest(key, b"x")
    assert (len(key), len(digest)) == (secret.SECRET_LENGTH, secret.DIGEST_LENGTH)
    assert secret.check_digest(key, b"x", digest) and not secret.check_digest(key, b"y", digest)
    assert codec.loads_base64(codec.dumps_base64({"a": 1})) == {"a": 1}
    assert timeout.Timeout(100, "").remaining() > 50
    with pytest.raises(timeout.TimeoutException, match="no hosts. Timeout after -1 seconds"):
        timeout.Timeout(-1, "no {activity}.").check_time_out_for("hosts")


def test_values_are_kept_by_http(monkeypatch: pytest.MonkeyPatch) -> None:
    from horovod.runner.http.http_client import put_data_into_kvstore, read_data_from_kvstore
    from horovod.runner.http.http_server import KVStoreServer

    monkeypatch.setenv("_HOROVOD_SECRET_KEY", "")  # it makes one
    server = KVStoreServer(0)
    port = server.start_server()
    try:
        put_data_into_kvstore("127.0.0.1", port, "scope", "key", [1, "two"])
        assert read_data_from_kvstore("127.0.0.1", port, "scope", "key") == [1, "two"]
        with pytest.raises(OSError, match="404"):
            read_data_from_kvstore("127.0.0.1", port, "scope", "other")
    finally:
        server.shutdown_server()


def test_ranks_of_a_launcher_of_ones_own_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars
    from horovod.runner.http.http_server import RendezvousServer

    monkeypatch.delenv("RUEDA_KEY_FILE", raising=False)
    plan = get_host_assignments(parse_hosts("localhost:2"), 2)
    server = RendezvousServer()
    port = server.start()
    key_file = os.environ["RUEDA_KEY_FILE"]
    try:
        assert os.stat(key_file).st_mode & 0o77 == 0
        server.init(plan)
        code = (
            "from rueda.common.basics import basics as b; b.init(); print(b.rank(), b.size());"
            " b.shutdown()"
        )
        started = [
            subprocess.Popen(
                [sys.executable, "-c", code], text=True, stdout=subprocess.PIPE,
                env={**environment(RUEDA_KEY_FILE=key_file), **create_slot_env_vars(place),
                     **create_run_env_vars("127.0.0.1", ["lo"], port)},
            )
            for place in plan
        ]  # fmt: skip
        said = [process.communicate(timeout=LIMIT_S)[0] for process in started]
        assert said == ["0 2\n", "1 2\n"]
    finally:
        server.stop()
    assert not os.path.exists(key_file) and "RUEDA_KEY_FILE" not in os.environ


def test_the_command_line_is_read_as_horovodrun_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from horovod.runner.common.util.config_parser import set_env_from_args
    from horovod.runner.launch import _words, parse_args

    line = "horovodrun -np 2 -H a:1,b:1 --fusion-threshold-mb 32 --verbose python t.py -x 1"
    monkeypatch.setattr(sys, "argv", line.split())
    args = parse_args()
    assert isinstance(args, Namespace)
    assert (args.num_proc, args.hosts, args.command) == (2, "a:1,b:1", "python t.py -x 1".split())
    assert "--num-proc" in _words(args) and "--verbose" in _words(args)
    assert set_env_from_args({}, args)["HOROVOD_FUSION_THRESHOLD"] == str(32 << 20)


def test_a_command_is_run_by_its_settings(capfd: pytest.CaptureFixture[str]) -> None:
    from horovod.runner.common.util.settings import Settings
    from horovod.runner.gloo_run import gloo_run

    settings = Settings(num_proc=2, hosts="localhost:2")
    gloo_run(settings, [], environment(), "127.0.0.1", "echo $HOROVOD_RANK")
    assert sorted(capfd.readouterr().out.splitlines()) == ["[0]<stdout>:0", "[1]<stdout>:1"]
    with pytest.raises(RuntimeError, match="one or more processes exited"):
        gloo_run(settings, [], environment(), "127.0.0.1", "exit 3")


def test_the_classes_of_torch_reduce_and_differentiate() -> None:
    torch = pytest.importorskip("torch")
    import horovod.torch as hvd
    from horovod.torch import mpi_lib_v2, mpi_ops

    for name in [name for name in os.environ if name not in environment()]:
        del os.environ[name]
    with pytest.raises(ValueError, match=r"has not been initialized; use hvd\.init\(\)\."):
        hvd.allreduce(torch.ones(1))
    with pytest.raises(RuntimeError, match=r"has not been initialized; use hvd\.init\(\)\."):
        hvd.rank()
    hvd.init()
    try:
        tensor = torch.ones(3, requires_grad=True)
        out = mpi_ops.HorovodAllreduce.apply(tensor, None, "a", hvd.Sum, 1.0, 2.0)
        out.sum().backward()
        assert (out.tolist(), tensor.grad.tolist()) == ([2.0] * 3, [2.0] * 3)
        handle = hvd.allreduce_async_(torch.ones(2), name="b")
        assert handle in mpi_ops._handle_map and len(mpi_ops._handle_map) == 1
        mpi_lib_v2.horovod_torch_wait_and_clear(handle)
        assert handle not in mpi_ops._handle_map
        hvd.check_extension("horovod.torch", "HOROVOD_WITH_PYTORCH", __file__, "mpi_lib_v2")
    finally:
        hvd.shutdown()
