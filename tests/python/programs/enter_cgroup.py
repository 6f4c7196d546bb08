# SPDX-License-Identifier: Apache-2.0
"""Goes into a cgroup and becomes a command; argv: the folder of the cgroup, the command."""

import os
import sys

with open(sys.argv[1] + "/cgroup.procs", "w") as procs:
    procs.write(str(os.getpid()))
os.execvp(sys.argv[2], sys.argv[2:])
