# SPDX-License-Identifier: Apache-2.0
"""init() with a communicator; argv: rank, and the file by which bytes travel."""

import pathlib
import sys
import time

import rueda.torch as hvd
import torch


class Comm:
    """What mpi4py's do; bytes travel by a file, unless it is called "none"."""

    def __init__(self, rank, file):
        self.rank, self.file = rank, pathlib.Path(file)

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return 2

    def bcast(self, data, root):
        if self.rank == root:
            part = self.file.with_suffix(".part")
            part.write_bytes(data)
            part.rename(self.file)
        if self.file.name == "none":
            raise OSError("no wire")
        deadline = time.monotonic() + 30
        while not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.file.read_bytes()


hvd.init(comm=Comm(int(sys.argv[1]), sys.argv[2]))
print(hvd.rank(), hvd.size(), hvd.mpi_enabled(), hvd.allgather(torch.tensor([hvd.rank()])))
