# SPDX-License-Identifier: Apache-2.0
"""An elastic training that counts its samples by a ledger.

``elastic_ledger.py LOG EPOCHS SAMPLES HOW [PAUSE]``: the state holds, for each epoch, how
often each sample has been trained on, summed over the ranks as gradients are; rank 0
writes it to LOG at the end. HOW is how the samples come: ``plain``, ``torch`` (a
DataLoader with workers), ``tf`` (a dataset of tf.data) or ``steps``, where ``SLOW`` in
the environment names the rank that takes twice as long. ``KILL`` names the ranks that
kill themselves: ``[[rank, batch of their life], ...]``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rueda import _core
from rueda.common import elastic
from rueda.common.basics import basics
from rueda.common.objects import allgather_object, broadcast_object
from rueda.data import Ledger

log, epochs, samples, how = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
pause = float(sys.argv[5]) if len(sys.argv) > 5 else 0.0
orders = [tuple(order) for order in json.loads(os.environ.get("KILL", "[]"))]
first_rank = int(os.environ.get("HOROVOD_RANK", "0"))
is_newcomer = False
batch_of_life = 0
taken = 0

if how == "torch":
    import torch

    class Numbers(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return samples

        def __getitem__(self, index: int) -> int:
            return index


if how == "tf":
    import tensorflow as tf


def batches(ledger: Ledger) -> Iterator[list[int]]:
    if how == "torch":
        loader = torch.utils.data.DataLoader(
            Numbers(), batch_sampler=ledger.portions(4), num_workers=1, prefetch_factor=3
        )
        for batch in ledger.recorded(loader):
            yield batch.tolist()
    elif how == "tf":
        dataset = tf.data.Dataset.from_generator(
            lambda: ledger.portions(4), output_signature=tf.TensorSpec([None], tf.int64)
        ).prefetch(3)
        for batch in ledger.recorded(dataset):
            yield batch.numpy().tolist()
    elif how == "steps":
        for step in ledger.steps(24, portion=2):
            mine = []
            for portion in step:
                time.sleep(0.02 * (1 + (str(basics.rank()) == os.environ.get("SLOW"))))
                mine += portion
            yield mine
    else:
        yield from ledger.batches(4)


def train(state: elastic.ObjectState) -> None:
    global batch_of_life, taken
    while state.epoch < epochs:
        for mine in batches(ledger):
            if not is_newcomer and (first_rank, batch_of_life) in orders:
                os.kill(os.getpid(), signal.SIGKILL)
            batch_of_life += 1
            time.sleep(pause)
            # The "gradient": all ranks learn of what all have seen.
            counts = [dict(epoch) for epoch in state.counts]
            for sample in (one for part in allgather_object(mine, name="seen") for one in part):
                counts[state.epoch][sample] = counts[state.epoch].get(sample, 0) + 1
            state.counts = counts
            taken += len(mine)
            state.steps += 1
            state.commit()
        state.epoch += 1
        ledger.set_epoch(state.epoch)
        state.commit()


def reset() -> None:
    basics.shutdown()
    basics.init()


basics.init()
is_newcomer = _core.elastic_term() > 1
ledger = Ledger(samples, seed=5)
state = elastic.ObjectState(
    broadcast_object, basics.rank, ledger=ledger, epoch=0, steps=0,
    counts=[{} for _ in range(epochs)],
)  # fmt: skip
elastic.run_fn(train, reset)(state)
shares = allgather_object(taken, name="shares")
if basics.rank() == 0:
    log.write_text(json.dumps({"counts": state.counts, "shares": shares, "steps": state.steps}))
