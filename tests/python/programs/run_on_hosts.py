# SPDX-License-Identifier: Apache-2.0
"""Runs a function on three ranks; argv: hosts, and the word to hand over."""

import os
import socket
import sys

import rueda


def look(word):
    if word == "fail" and os.environ["RUEDA_RANK"] == "2":
        raise ValueError("not here")
    return word, socket.gethostname()


print(rueda.run(look, (sys.argv[2],), np=3, hosts=sys.argv[1].split(",")))
