# SPDX-License-Identifier: Apache-2.0
"""Tensors that say they are on a GPU, over the stand-in for the CUDA driver.

torch has no GPU here, so a subclass of its tensor tells where its memory is, and the memory is
the stand-in's.
"""

from __future__ import annotations

import ctypes
import os
from types import SimpleNamespace

import torch

LIBRARY = os.environ["RUEDA_CUDA_LIB"]
STREAM = 0


def pretend() -> None:
    """torch's current stream of a GPU is the default one."""
    stream = SimpleNamespace(cuda_stream=STREAM, synchronize=lambda: None)
    torch.cuda.current_stream = lambda device: stream  # type: ignore


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

    # It is in rows, and stays where it is.

    def detach(self) -> Far:  # type: ignore[override]
        return self

    def resolve_neg(self) -> Far:
        return self

    def contiguous(self) -> Far:  # type: ignore[override]
        return self

    def view(self, *shape: int) -> Far:  # type: ignore[override]
        assert shape == (-1,) and self.dim() == 1
        return self
