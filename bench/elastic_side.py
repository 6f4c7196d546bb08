# SPDX-License-Identifier: Apache-2.0
"""What the ranks of bench/elastic run: ``elastic_side.py WHO LOG STEPS KILL_AT``.

The same training for every launcher. Rank 1 kills itself after step KILL_AT of its first
life; each rank writes to LOG when it died and when it completed a step. WHO is rueda or
horovod, which go on in the same processes from the last commit, repair, which goes on
inside the step, or torchrun, which starts all of them again from a checkpoint.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

who, log = sys.argv[1], Path(sys.argv[2])
steps, kill_at = int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))


def write(what: str, step: int) -> None:
    with log.open("a") as file:
        file.write(json.dumps([what, step, time.time()]) + "\n")


def die_if(is_victim: bool, step: int) -> None:
    if is_victim and step == kill_at:
        write("died", step)
        os.kill(os.getpid(), signal.SIGKILL)


def one_step(net: Any, optimizer: Any) -> None:
    optimizer.zero_grad()
    net(torch.ones(16, 256)).square().mean().backward()
    optimizer.step()
    time.sleep(0.02)


def train_elastic() -> None:
    hvd = importlib.import_module(f"{who}.torch")
    hvd.init()
    victim = hvd.rank() == 1 and hvd.size() == int(os.environ["BENCH_SIZE"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())

    @hvd.elastic.run
    def train(state: Any) -> None:
        while state.step < steps:
            die_if(victim, state.step)
            one_step(model, optimizer)
            state.step += 1
            state.commit()
            write("did", state.step)

    train(hvd.elastic.TorchState(model, optimizer, step=0))


def train_on() -> None:
    hvd = importlib.import_module("rueda.torch")
    hvd.init()
    victim = hvd.rank() == 1
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    for step in range(steps):
        die_if(victim, step)
        one_step(model, optimizer)
        write("did", step + 1)
    hvd.shutdown()


def train_again() -> None:
    torch.distributed.init_process_group("gloo")
    victim = torch.distributed.get_rank() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    net = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    kept, step = log.with_suffix(".kept"), 0
    if kept.exists():
        copy = torch.load(kept)
        step = copy["step"]
        model.load_state_dict(copy["model"])
    while step < steps:
        die_if(victim, step)
        one_step(net, optimizer)
        step += 1
        if torch.distributed.get_rank() == 0:
            torch.save({"step": step, "model": model.state_dict()}, f"{kept}.new")
            os.replace(f"{kept}.new", kept)
        write("did", step)
    torch.distributed.destroy_process_group()


if who == "torchrun":
    train_again()
elif who == "repair":
    train_on()
else:
    train_elastic()
