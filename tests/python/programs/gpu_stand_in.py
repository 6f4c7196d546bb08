# SPDX-License-Identifier: Apache-2.0
"""One rank: rueda.torch with tensors that say they are on a GPU (far_tensors.py).

Ends well only if every result is right.
"""

from __future__ import annotations

from pathlib import Path

import rueda.torch as hvd
import torch
from far_tensors import LIBRARY, Driver, Far, pretend

COUNT = 1000


def is_loaded() -> bool:
    return Path(LIBRARY).name in Path("/proc/self/maps").read_text()


def main() -> None:
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    assert hvd.allreduce(torch.ones(3), op=hvd.Sum).tolist() == [size] * 3
    assert not is_loaded(), "the driver is loaded without a tensor on a GPU"

    driver = Driver()
    pretend()
    numbers = torch.arange(COUNT, dtype=torch.float32)

    far = Far.put(driver, numbers + rank)
    assert hvd.allreduce_(far, op=hvd.Sum, name="sum") is far
    assert torch.equal(far.cpu(), size * numbers + sum(range(size)))

    group = [Far.put(driver, numbers[: 10 * i + 1] * (rank + 1)) for i in range(5)]
    hvd.grouped_allreduce_(group, op=hvd.Average, name="group")
    for i, one in enumerate(group):
        assert torch.equal(one.cpu(), numbers[: 10 * i + 1] * (size + 1) / 2)

    half = Far.put(driver, (numbers * (rank + 1)).bfloat16())
    hvd.allreduce_(half, op=hvd.Max, name="half")
    assert torch.equal(half.cpu(), (numbers * size).bfloat16())

    cast = Far.put(driver, numbers + 100 * rank)
    hvd.broadcast_(cast, root_rank=size - 1, name="cast")
    assert torch.equal(cast.cpu(), numbers + 100 * (size - 1))

    # A tensor of the CPU where the others have one on a GPU is told, and all go on.
    mixed = Far.put(driver, numbers) if rank == 0 else numbers.clone()
    try:
        hvd.allreduce_(mixed, name="mixed")
    except (RuntimeError, ValueError) as error:
        assert "GPU" in str(error), str(error)
    else:
        raise AssertionError("a CPU tensor was reduced with one of a GPU")

    for collective in (hvd.grouped_allreduce, hvd.grouped_allgather, hvd.grouped_reducescatter):
        try:
            collective([Far.put(driver, numbers), numbers.clone()])
        except RuntimeError as error:
            assert "cuda:0" in str(error) and "cpu (number 1)" in str(error), str(error)
        else:
            raise AssertionError("a group is on two devices")
    hvd.barrier()
    hvd.shutdown()


main()
