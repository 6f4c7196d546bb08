# SPDX-License-Identifier: Apache-2.0
"""A rank with a child and a grandchild, each in a session of its own and deaf to one signal.

All write down their ids. argv: the folder to write to, and the signal, if not SIGTERM.
"""

import os
import signal
import sys
import time

folder = sys.argv[1]


def note():
    with open(f"{folder}/id{os.getpid()}", "w") as file:
        file.write(f"{os.getpid()}\n")


for _ in range(2):
    if os.fork():
        break
    os.setsid()
signal.signal(signal.Signals[sys.argv[2] if len(sys.argv) > 2 else "SIGTERM"], signal.SIG_IGN)
note()
time.sleep(600)
