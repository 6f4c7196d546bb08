# SPDX-License-Identifier: Apache-2.0
"""Process groups of torch.distributed on Rueda: made, used, and dropped, on four ranks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="missing tool: torch")

import torch.distributed as dist  # noqa: E402
from c10d_cases import cases_of, run_cases  # noqa: E402

try:
    from torch.distributed.device_mesh import init_device_mesh
except ImportError:  # before torch 2.2
    from torch.distributed._tensor.device_mesh import init_device_mesh

# Older versions only forget a group that is destroyed, and do not tell it.
TELLS_GROUPS = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 7)

SIZE = 4
MESHES = 20


def me() -> int:
    return dist.get_rank()


def total(group=None) -> float:
    tensor = torch.tensor(float(me()))
    dist.all_reduce(tensor, group=group)
    return tensor.item()


def case_groups_that_all_ranks_make() -> None:
    low, high, ends = dist.new_group([0, 1]), dist.new_group([3, 2]), dist.new_group([0, 3])
    assert total(low if me() < 2 else high) == (1 if me() < 2 else 5)
    if me() in (0, 3):
        assert total(ends) == 3
        told = torch.tensor([me()])
        dist.broadcast(told, 3, group=ends)
        assert told.item() == 3
        if me() == 0:
            dist.send(torch.ones(2), 3, group=ends)
        else:
            dist.recv(torch.zeros(2), 0, group=ends)
    again = dist.new_group(list(range(SIZE)))
    assert total(again) == 6


def case_groups_that_their_members_make() -> None:
    """The other ranks wait elsewhere, and take no part."""
    if me() < 2:
        group = dist.new_group([0, 1], use_local_synchronization=True)
        assert total(group) == 1
        dist.destroy_process_group(group)
    dist.barrier()


def case_meshes() -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
    rows, columns = mesh.get_group("rows"), mesh.get_group("columns")
    assert total(columns) == (1 if me() < 2 else 5)
    assert total(rows) == (2 if me() % 2 == 0 else 4)


def case_tensors_in_a_mesh() -> None:
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (SIZE,))
    torch.manual_seed(1)
    whole = torch.randn(8, 12)
    shards = distribute_tensor(whole, mesh, [Shard(0)])
    assert shards.to_local().shape == (2, 12)
    assert torch.equal(shards.full_tensor(), whole)
    turned = shards.redistribute(mesh, [Shard(1)])
    assert torch.equal(turned.to_local(), whole[:, 3 * me() : 3 * me() + 3])
    product = shards.t() @ shards
    assert torch.allclose(product.redistribute(mesh, [Replicate()]).to_local(), whole.t() @ whole,
                          atol=1e-5)  # fmt: skip


def memory() -> int:
    """Bytes of this process that are its own or shared."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


def case_many_meshes_come_and_go() -> None:
    def make_and_drop() -> None:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
        for name in ("rows", "columns"):
            group = mesh.get_group(name)
            assert total(group) >= 0
            dist.destroy_process_group(group)

    make_and_drop()
    before = memory()
    for _ in range(MESHES):
        make_and_drop()
    assert memory() - before < 2_000_000 * MESHES


def case_a_group_that_is_gone_is_refused() -> None:
    if not TELLS_GROUPS:
        return
    group = dist.new_group([0, 1])
    if me() < 2:
        dist.destroy_process_group(group)
        with pytest.raises(RuntimeError, match="was destroyed"):
            group.barrier()


FORK = """
import os, signal
from rueda.torch.c10d import work

work._making.acquire()  # as if another thread were making the completer
child = os.fork()
if child == 0:
    signal.alarm(30)
    os._exit(0 if work._completer() is work._completer() else 1)
print(os.waitpid(child, 0)[1])
"""


def test_a_child_of_a_fork_makes_a_completer_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "0\n", done.stderr


test_case = cases_of(__name__, SIZE)

if __name__ == "__main__":
    run_cases(globals())
