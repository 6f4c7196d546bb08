# SPDX-License-Identifier: Apache-2.0
"""Dies in step 3 of its first life; in its second it goes on from its copy."""

import os
import signal
import sys

from rueda.common import elastic
from rueda.common.basics import basics
from rueda.common.objects import allgather_object, broadcast_object


def train(state):
    print(f"begins at {state.step}", flush=True)
    while state.step < 6:
        state.sum += sum(allgather_object(1, name="one"))
        state.step += 1
        state.commit(to=sys.argv[1])
        if state.step == 3 and os.environ["RUEDA_RESTART"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)


def reset():
    basics.shutdown()
    basics.init()


basics.init()
state = elastic.ObjectState(broadcast_object, basics.rank, step=0, sum=0)
state.load(sys.argv[1])
elastic.run_fn(train, reset)(state)
print(f"ends with {state.sum}", flush=True)
