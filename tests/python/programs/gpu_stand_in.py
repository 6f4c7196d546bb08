# SPDX-License-Identifier: Apache-2.0
"""One rank: tensors that say they are on a GPU, over a stand-in for the CUDA driver.

torch has no GPU here, so a subclass of its tensor tells where its memory is, and the memory is
the stand-in's. Ends well only if every result is right.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from types import SimpleNamespace

import rueda.torch as hvd
import torch

LIBRARY = os.environ["RUEDA_CUDA_LIB"]
STREAM = 0
COUNT = 1000


def is_loaded() -> bool:
    return Path(LIBRARY).name in Path("/proc/self/maps").read_text()


class Driver:
    """Enough of the driver to fill and read its memory."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(LIBRARY)
        self.context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.call("cuCtxPushCurrent_v2", self.context)

    def call(self, name: str, *arguments: object) -> None:
        code = getattr(self.library, name)(*arguments)
        assert code == 0, f"{name} answers {code}"

    def alloc(self, size: int) -> int:
        at = ctypes.c_void_p()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
        assert at.value is not None
        return at.value

    def copy(self, to: int, source: int, size: int) -> None:
        self.call(
            "cuMemcpyAsync", ctypes.c_void_p(to), ctypes.c_void_p(source),
            ctypes.c_size_t(size), None,
        )  # fmt: skip
        self.call("cuStreamSynchronize", None)


class Far(torch.Tensor):
    """A tensor whose numbers are in the driver's memory."""

    driver: Driver
    at: int

    @staticmethod
    def put(driver: Driver, numbers: torch.Tensor) -> Far:
        far = torch.Tensor._make_subclass(Far, torch.zeros_like(numbers))
        far.driver = driver
        far.at = driver.alloc(numbers.nbytes)
        driver.copy(far.at, numbers.data_ptr(), numbers.nbytes)
        return far

    is_cpu = False
    is_cuda = True
    device = torch.device("cuda", 0)

    def data_ptr(self) -> int:
        return self.at

    def cpu(self) -> torch.Tensor:  # type: ignore[override]
        numbers = torch.zeros(tuple(self.shape), dtype=self.dtype)
        self.driver.copy(numbers.data_ptr(), self.at, numbers.nbytes)
        return numbers


def main() -> None:
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    assert hvd.allreduce(torch.ones(3), op=hvd.Sum).tolist() == [size] * 3
    assert not is_loaded(), "the driver is loaded without a tensor on a GPU"

    driver = Driver()
    torch.cuda.current_stream = lambda device: SimpleNamespace(cuda_stream=STREAM)  # type: ignore
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
