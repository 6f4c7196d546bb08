# SPDX-License-Identifier: Apache-2.0
"""Has two ranks write down their ids and rest; argv: the folder to write to."""

import os
import sys
import time

import rueda


def rest(folder):
    with open(f"{folder}/id{os.getpid()}", "w") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(600)


rueda.run(rest, (sys.argv[1],), np=2)
