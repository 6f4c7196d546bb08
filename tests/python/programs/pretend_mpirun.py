# SPDX-License-Identifier: Apache-2.0
"""Stands in for mpirun; writes down what of the key of rueda.run() it was given.

argv: the file to write, then what mpirun is given.
"""

import os
import sys

if "--version" in sys.argv:
    print("mpirun (Open MPI) 4.1.4")
    sys.exit()
said = os.environ["RUEDA_RUN"]
path = said[len("file:") :]
with open(path) as file:
    key = file.read().split(",")[0]
mode = oct(os.stat(path).st_mode & 0o777)
shown = [word for word in [*sys.argv, *os.environ.values()] if key in word]
with open(sys.argv[1], "w") as file:
    file.write(f"{said} {len(key)} {mode} {shown}")
sys.exit(3)
