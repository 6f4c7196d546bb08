# SPDX-License-Identifier: Apache-2.0
"""Initialises and sums; where the job cannot start it prints why."""

import sys

import horovod.torch as hvd
import torch

try:
    hvd.init()
except ValueError as error:
    print(error)
    sys.exit()
print(hvd.size(), hvd.allreduce(torch.ones(2), op=hvd.Sum).tolist())
