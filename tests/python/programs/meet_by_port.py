# SPDX-License-Identifier: Apache-2.0
"""Rank 0 listens at the port of torch.distributed, as its script does for
init_process_group(); rank 1 connects."""

import os
import socket
import time

port = int(os.environ["MASTER_PORT"])
if os.environ["RANK"] == "0":
    with socket.create_server(("127.0.0.1", port)) as server:
        server.accept()[0].recv(1)
for _ in range(100 if os.environ["RANK"] == "1" else 0):
    try:
        socket.create_connection(("127.0.0.1", port)).send(b"1")
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
