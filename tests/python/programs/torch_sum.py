# SPDX-License-Identifier: Apache-2.0
"""Adds up the numbers of all ranks."""

import sys

import horovod.torch as hvd
import torch

hvd.init()
total = int(hvd.allreduce(torch.tensor([hvd.rank() + 1]), op=hvd.Sum))
sys.stdout.write(f"{total} {hvd.mpi_enabled()}\n")  # in one piece
