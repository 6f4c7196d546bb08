# SPDX-License-Identifier: Apache-2.0
"""Thousands of process groups of torch.distributed on Rueda, which leave nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="missing tool: torch")

import torch.distributed as dist  # noqa: E402
from c10d_cases import cases_of, run_cases  # noqa: E402
from rueda.torch.c10d import job  # noqa: E402
from test_c10d_groups import init_device_mesh, me, total  # noqa: E402

SIZE = 2
MANY = 2000
MESHES = 20
LIMIT_S = 600  # they take ten seconds on a calm machine


def memory() -> int:
    """Bytes of this process that are its own or shared."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


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


def case_many_meshes_come_and_go() -> None:
    def make_and_drop() -> None:
        mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("rows", "columns"))
        for name in ("rows", "columns"):
            group = mesh.get_group(name)
            assert total(group) >= 0
            dist.destroy_process_group(group)

    make_and_drop()
    before = memory()
    for _ in range(MESHES):
        make_and_drop()
    assert memory() - before < 2_000_000 * MESHES


test_case = cases_of(__name__, SIZE, LIMIT_S)

if __name__ == "__main__":
    run_cases(globals())
