# SPDX-License-Identifier: Apache-2.0
"""Rank 1 raises an exception; argv: what its words begin with."""

import sys

import horovod.torch as hvd
import torch

hvd.init()


def feed():
    raise KeyError(f"{sys.argv[1]}the cat ate it")


if hvd.rank() == 1:
    feed()
try:
    hvd.allreduce(torch.ones(1))
except hvd.HorovodInternalError as error:
    print(error)
