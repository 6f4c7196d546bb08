# SPDX-License-Identifier: Apache-2.0
"""The ledger: whatever dies and joins, each epoch has each sample exactly once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest
from ranks import environment
from rueda.data import ledger as module
from rueda.data.ledger import Ledger

PROGRAM = Path(__file__).parent / "programs" / "elastic_ledger.py"
LIMIT_S = 300


# ---- In this process: ranks are ledgers that take turns -----------------------


class Ranks:
    """Ledgers of several ranks, whose collectives are carried out in step."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rank = 0
        self.parts: list[Any] = []
        self.count = 0

    def elastic_term(self) -> int:
        return 1

    def elastic_add(self, key: str, count: int) -> int:
        self.count += count
        return self.count


def agree_all(ledgers: list[Ledger], monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [module._merged(ledger._mine) for ledger in ledgers]
    monkeypatch.setattr(module, "allgather_object", lambda _, name: parts)
    for ledger in ledgers:
        ledger.agree()
        ledger.save()


@pytest.mark.parametrize("seed", range(30))
def test_each_sample_comes_once_whatever_is_lost(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    length, size = chance.randint(0, 200), chance.randint(1, 5)
    ledgers = [Ledger(length, seed=seed) for _ in range(size)]
    seen: list[int] = []
    monkeypatch.setattr(module._core, "elastic_term", lambda: 0)
    for _ in range(100):
        agree_all(ledgers, monkeypatch)
        if ledgers[0].left() == 0:
            break
        monkeypatch.setattr(module, "allgather_object", lambda _, name: [[]])
        monkeypatch.setattr(module._core, "size", lambda: len(ledgers))
        iterators = []
        for rank, ledger in enumerate(ledgers):
            monkeypatch.setattr(module._core, "rank", lambda rank=rank: rank)
            iterators.append(iter(ledger.batches(chance.choice([7]))))
        steps = chance.randint(1, 4)
        pending = []
        for _ in range(steps):
            step = [next(iterator, None) for iterator in iterators]
            # The same number of steps on every rank.
            assert len({one is None for one in step}) == 1
            if step[0] is None:
                break
            assert all(len(one) <= 7 for one in step)
            pending += [sample for one in step for sample in one]
        if chance.random() < 0.4:  # a rank is lost before the commit
            if len(ledgers) > 1:
                ledgers.pop(chance.randrange(len(ledgers)))
            for ledger in ledgers:
                ledger.restore()
        else:
            seen += pending
    assert sorted(seen) == list(range(length))


def test_what_reads_ahead_is_not_done_before_it_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = Ledger(20, shuffle=False)
    monkeypatch.setattr(module, "allgather_object", lambda mine, name: [mine])
    monkeypatch.setattr(module._core, "rank", lambda: 0)
    monkeypatch.setattr(module._core, "size", lambda: 1)
    monkeypatch.setattr(module._core, "elastic_term", lambda: 0)
    ahead = list(ledger.portions(5))  # all of them are handed out
    ledger.record()
    ledger.agree()
    assert (len(ahead), ledger.left()) == (4, 15)
    # Another division makes the other portions void.
    assert [one for batch in ledger.batches(5) for one in batch] == list(range(5, 20))
    with pytest.raises(IndexError):
        ledger.record()


def test_a_ledger_of_another_length_is_refused() -> None:
    kept = Ledger(10).state_dict()
    with pytest.raises(ValueError, match="kept with 10 samples, and there are 11 now"):
        Ledger(11).load_state_dict(kept)


# ---- Real jobs ------------------------------------------------------------------


def run_job(
    tool: str, log: Path, options: list[str], words: list[str], **more: str
) -> dict[str, Any]:
    done = subprocess.run(
        [tool, *options, sys.executable, str(PROGRAM), str(log), *words],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
        env=environment(TF_CPP_MIN_LOG_LEVEL="3", **more),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(log.read_text())


def check_counts(found: dict[str, Any], epochs: int, samples: int) -> None:
    once = {str(sample): 1 for sample in range(samples)}
    assert len(found["counts"]) == epochs
    for counts in found["counts"]:
        assert counts == once


@pytest.mark.parametrize("how", ["plain", "torch", "tf", "steps"])
def test_each_epoch_has_each_sample_once_under_kills_and_joins(
    need_tool: Callable[[str], str], tmp_path: Path, how: str
) -> None:
    if how in ("torch", "tf"):
        pytest.importorskip("torch" if how == "torch" else "tensorflow")
    # Frameworks take long to import, so where there is one no process joins.
    is_light = how in ("plain", "steps")
    options = ["-np", "3", "--min-np", "1", "--max-np", "3", "-H", "localhost:5"]
    if not is_light:
        options = ["-np", "2", "--min-np", "1", "-H", "localhost:2"]
    found = run_job(
        need_tool("ruedarun"), tmp_path / "log", options,
        ["3" if is_light else "2", "101", how, "0.02"], KILL="[[0, 3], [2, 9]]",
    )  # fmt: skip
    check_counts(found, epochs=3 if is_light else 2, samples=101)


def test_a_rank_that_is_twice_as_fast_gets_twice_the_samples(
    need_tool: Callable[[str], str], tmp_path: Path
) -> None:
    options = ["-np", "2", "--min-np", "1", "-H", "localhost:2"]
    found = run_job(
        need_tool("ruedarun"), tmp_path / "log", options, ["1", "240", "steps"], SLOW="1"
    )
    check_counts(found, epochs=1, samples=240)
    fast, slow = found["shares"]
    assert 1.4 < fast / slow < 3.0
