# SPDX-License-Identifier: Apache-2.0
"""Thousands of process groups of torch.distributed on Rueda, which leave nothing behind."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="missing tool: torch")

import torch.distributed as dist  # noqa: E402
from c10d_cases import cases_of, run_cases  # noqa: E402
from rueda.torch.c10d import job  # noqa: E402
from test_c10d_groups import me, memory, total  # noqa: E402

SIZE = 2
MANY = 2000
LIMIT_S = 600  # they take ten seconds on a calm machine


class Recorder:
    """A store that remembers which keys were set."""

    def __init__(self, store: dist.Store) -> None:
        self.store = store
        self.keys: list[str] = []

    def set(self, key: str, value: str) -> None:
        self.keys.append(key)
        self.store.set(key, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def case_many_groups_come_and_go() -> None:
    def make_and_drop() -> None:
        group = dist.new_group([0, 1], use_local_synchronization=True)
        assert total(group) == 1
        dist.destroy_process_group(group)

    recorder = job._job.box = Recorder(job._job.box)
    for _ in range(100):
        make_and_drop()
    before = memory()
    for _ in range(MANY):
        make_and_drop()
    assert memory() - before < 2_000 * MANY
    assert len(recorder.keys) == (MANY + 100 if me() == 0 else 0)
    assert not any(recorder.check([key]) for key in recorder.keys)


test_case = cases_of(__name__, SIZE, LIMIT_S)

if __name__ == "__main__":
    run_cases(globals())
