# SPDX-License-Identifier: Apache-2.0
"""rueda.places: what only Python can find out about a rank's place."""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from ranks import program
from rueda import _core
from rueda.places import (
    Place,
    find_tf_config,
    find_torchrun,
    from_tf_config,
    torch_exchange,
)

LIMIT_S = 60

# ---- TF_CONFIG --------------------------------------------------------------


def config(cluster: Any = None, kind: Any = "worker", index: Any = 0) -> str:
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


WORKERS = {"worker": ["a:2222", "b:2222"]}
WITH_CHIEF = {"worker": ["a:2222", "b:2222"], "chief": ["c:2222"], "ps": ["d:2222"]}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (config(WORKERS, index=0), Place(0, 2, "a:3222")),
        (config(WORKERS, index=1), Place(1, 2, "a:3222")),
        (config(WORKERS, index="1"), Place(1, 2, "a:3222")),
        (config(WITH_CHIEF, "chief"), Place(0, 3, "c:3222")),
        (config(WITH_CHIEF, "worker", 1), Place(2, 3, "c:3222")),
        (config({"master": ["m:1"], "worker": ["a:2"]}, index=0), Place(1, 2, "m:1001")),
        (config({"chief": ["one:2222"]}, "chief"), Place(0, 1, "one:3222")),
        (config({"worker": ["[fe80::1]:2222"]}), Place(0, 1, "[fe80::1]:3222")),
    ],
)
def test_a_task_has_its_place(text: str, place: Place) -> None:
    assert from_tf_config(text) == place


@pytest.mark.parametrize(
    ("ports", "store"),
    [
        ([64535, 1], 65535),
        ([64536, 1], 63536),
        ([2222, 3222], 3223),
        ([2222, 3222, 3223], 3224),
        ([64535, 65535], 1024),
    ],
)
def test_the_port_of_the_store_is_nobody_elses(ports: list[int], store: int) -> None:
    text = config({"worker": [f"here:{port}" for port in ports]})
    assert from_tf_config(text).store == f"here:{store}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('"worker"', "not a JSON object"),
        ("{}", 'no "cluster"'),
        (config({}), 'no "cluster"'),
        (config(["a:1"]), 'no "cluster"'),
        (config({"worker": "a:1"}), '"worker" of the cluster is not a list'),
        (config({"worker": {"1": "a:1"}}), '"worker" of the cluster is not a list'),
        (config({"ps": ["a:1"]}), "neither a chief nor workers"),
        (config({"worker": []}), "neither a chief nor workers"),
        (config({"chief": ["a:1", "b:1"]}, "chief"), "2 chiefs or masters"),
        (config({"chief": ["a:1"], "master": ["b:1"]}, "chief"), "2 chiefs or masters"),
        (config({"worker": ["a:1", "b:1", "a:1"]}), '"a:1" is there twice'),
        (config({"worker": ["a"]}), '"a" is not an address'),
        (config({"worker": [":1"]}), '":1" is not an address'),
        (config({"worker": [7]}), '"7" is not an address'),
        (config({"worker": ["fe80::1:2222"]}), "is not an address"),
        (config({"worker": ["a:x"]}), '"x" in "a:x" is not a port'),
        (config({"worker": ["a:0"]}), "is not a port"),
        (config({"worker": ["a:65536"]}), "is not a port"),
        (json.dumps({"cluster": WORKERS}), 'no "task"'),
        (json.dumps({"cluster": WORKERS, "task": {"type": "worker"}}), 'no "task"'),
        (config(WORKERS, index=2), "worker 2; the cluster has 2 of them"),
        (config(WORKERS, index=-1), "worker -1; the cluster has 2 of them"),
        (config(WORKERS, index=None), "worker None; the cluster has 2 of them"),
        (config(WORKERS, "chief"), 'type "chief", of which the cluster has none'),
        (config(WORKERS, "boss"), 'type "boss", of which the cluster has none'),
        (config(WORKERS, ["worker"]), "of which the cluster has none"),
        (config(WITH_CHIEF, "ps"), 'a task of type "ps" is no rank'),
        (config(WITH_CHIEF, "evaluator"), 'a task of type "evaluator" is no rank'),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    with pytest.raises(ValueError, match="^TF_CONFIG: ") as caught:
        from_tf_config(text)
    assert words in str(caught.value)


# ---- The nearest launcher ---------------------------------------------------

TORCH = {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "a", "MASTER_PORT": "1"}


def test_tf_config_counts_where_nobody_is_nearer() -> None:
    alone = {"TF_CONFIG": config(WORKERS, index=1)}
    assert find_tf_config(alone) == Place(1, 2, "a:3222")
    assert find_tf_config({}) is None
    assert find_tf_config({"TF_CONFIG": ""}) is None
    for name in ("RUEDA_RANK", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        assert find_tf_config({**alone, name: "0"}) is None
    assert find_tf_config({**alone, **TORCH}) is None
    assert find_tf_config({**alone, "RANK": "0", "WORLD_SIZE": "2"}) is not None


def test_torchrun_counts_where_nobody_is_nearer() -> None:
    assert find_torchrun(TORCH) == 3
    assert find_torchrun({"TORCHELASTIC_RUN_ID": "x", "RANK": "1"}) == 1
    assert find_torchrun({**TORCH, "OMPI_COMM_WORLD_RANK": "0"}) == 3
    assert find_torchrun({**TORCH, "HOROVOD_RANK": "0"}) is None
    assert find_torchrun({"RANK": "1"}) is None
    assert find_torchrun({}) is None


def test_no_framework_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, rueda.places; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    assert done.stdout == "False\n"


# ---- torch's store ----------------------------------------------------------


@pytest.fixture(scope="session")
def dist() -> Any:
    """torch.distributed, which complains if there is no numpy."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("torch.distributed")
    except ImportError:
        pytest.skip("missing tool: torch")


@pytest.fixture
def stores(dist: Any) -> list[Any]:
    """Four ends of one store over TCP; the first holds it."""
    limit = timedelta(seconds=LIMIT_S)
    first = dist.TCPStore("127.0.0.1", 0, None, True, limit, wait_for_workers=False)
    return [first] + [dist.TCPStore("127.0.0.1", first.port, None, False, limit) for _ in range(3)]


def exchange_all(stores: list[Any], data: bytes, timeout_s: float = 10.0) -> list[bytes]:
    """One start of a job: a thread for each rank. None has a memory of others."""
    with ThreadPoolExecutor(len(stores)) as pool:
        return list(
            pool.map(
                lambda rank: torch_exchange(stores[rank], len(stores), timeout_s)(
                    rank, data if rank == 0 else bytes(len(data))
                ),
                range(len(stores)),
            )
        )


def test_every_rank_gets_the_bytes_of_rank_0(stores: list[Any]) -> None:
    exchange_all(stores, b"before")  # questions stay
    before = stores[0].num_keys()
    for round_ in range(3):
        data = bytes([round_]) * 453
        assert exchange_all(stores, data) == [data] * 4
    assert stores[0].num_keys() == before


def test_the_store_does_not_learn_what_passes_through_it(
    dist: Any, stores: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = bytes(range(64))
    told: list[bytes] = []
    store_set = dist.PrefixStore.set

    def listen(self: Any, key: str, value: str | bytes) -> None:
        told.append(value.encode() if isinstance(value, str) else value)
        store_set(self, key, value)

    monkeypatch.setattr(dist.PrefixStore, "set", listen)
    assert exchange_all(stores, secret) == [secret] * 4
    assert sum(len(value) > len(secret) for value in told) >= 3
    assert not any(secret[i : i + 8] in value for value in told for i in range(56))


def test_an_answer_that_was_changed_is_refused(dist: Any) -> None:
    public, opener = _core.envelope_opener()
    envelope = bytearray(_core.envelope_seal(public, b"a key"))
    assert _core.envelope_open(public, opener, bytes(envelope)) == b"a key"
    envelope[-1] ^= 1
    for wrong in (bytes(envelope), b"", bytes(48)):
        with pytest.raises(ValueError, match="sealed for another rank, or changed"):
            _core.envelope_open(public, opener, wrong)
    for wrong in (b"short", bytes(32)):
        with pytest.raises(ValueError, match="no public key"):
            _core.envelope_seal(wrong, b"a key")


def test_a_store_with_leftovers_gives_the_new_bytes(dist: Any, stores: list[Any]) -> None:
    """Ranks of an earlier start died: some with a question, some with an answer."""
    box = dist.PrefixStore("rueda", stores[0])
    for rank, name in ((1, "answer/old"), (2, "answer/older")):
        box.set(f"question/{rank}", f"{name} {_core.envelope_opener()[0].hex()}")
        box.set(f"asked/{rank}", "")
    box.set("answer/older", b"old")
    box.set("question/3", "answer/oldest")
    assert exchange_all(stores, b"new") == [b"new"] * 4
    assert not any(box.delete_key(f"asked/{rank}") for rank in (1, 2, 3))


def test_a_store_of_an_old_torch_will_do(
    dist: Any, stores: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(dist.Store, "check", raising=False)
    assert exchange_all(stores, b"data") == [b"data"] * 4


def test_rank_0_names_who_did_not_come(dist: Any, stores: list[Any]) -> None:
    box = dist.PrefixStore("rueda", stores[0])
    box.set("question/1", f"answer/old {_core.envelope_opener()[0].hex()}")
    box.set("asked/1", "")
    started = time.monotonic()
    with pytest.raises(TimeoutError, match="of 4 ranks .* in time: 1, 2, 3; are they"):
        torch_exchange(stores[0], 4, timeout_s=0.5)(0, b"x")
    assert time.monotonic() - started < 5
    # What was not taken is gone.
    assert not box.delete_key("answer/old")


def test_without_rank_0_the_others_give_up_in_time(stores: list[Any]) -> None:
    started = time.monotonic()
    with pytest.raises(TimeoutError, match="rank 1 had no answer from rank 0"):
        torch_exchange(stores[1], 4, timeout_s=0.5)(1, b"x")
    assert time.monotonic() - started < 5


def test_a_store_without_a_size_is_refused(stores: list[Any]) -> None:
    with pytest.raises(ValueError, match="give size"):
        torch_exchange(stores[0])


def test_processes_of_one_env_exchange_through_rank_0(dist: Any) -> None:
    """Without an agent rank 0 opens the store at MASTER_PORT."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", program("exchange_words.py")],
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        assert [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks] == ["first\nagain\n"] * 2
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
