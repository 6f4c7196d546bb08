# SPDX-License-Identifier: Apache-2.0
"""Prints "up", sleeps, and prints "bye" when it is interrupted."""

import time

try:
    print("up")
    time.sleep(600)
except KeyboardInterrupt:
    print("bye")
