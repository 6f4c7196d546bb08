# SPDX-License-Identifier: Apache-2.0
"""Prints the variables of torchrun as JSON; argv: "hold" to also listen at its port for 20 s."""

import json
import os
import socket
import sys
import time

NAMES = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT".split()

print(json.dumps([os.environ[name] for name in NAMES] + [os.environ.get("TORCHELASTIC_RUN_ID")]))
if sys.argv[1:] == ["hold"]:
    held = socket.create_server(("", int(os.environ["MASTER_PORT"])))
    print("up", flush=True)
    time.sleep(20)
