# SPDX-License-Identifier: Apache-2.0
"""Prints the sum of what all ranks of the job were given, and stays until its input ends."""

import sys

from rueda.common.basics import basics
from rueda.common.objects import allgather_object

basics.init()
print(sum(allgather_object(int(sys.argv[1]))), flush=True)
sys.stdin.read()
basics.shutdown()
