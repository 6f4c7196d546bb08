# SPDX-License-Identifier: Apache-2.0
"""Ranks of tests/multi/named_main.c, on one host or on several."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from cluster import Hosts
from ranks import Done, check_way, environment, run_all

LIMIT_S = 60
PORT = 4000


def program() -> str:
    path = Path(__file__).resolve().parents[2] / "build" / "release" / "tests" / "named_main"
    if not path.exists():
        pytest.skip(f"missing tool: {path.name}")
    return str(path)


def here(size: int, *words: str, limit_s: float = LIMIT_S, **more: str) -> list[Done]:
    """This many ranks on this host."""
    job = f"named-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    return run_all(
        [[program(), *words]] * size,
        [
            environment(RUEDA_RANK=str(rank), RUEDA_SIZE=str(size), RUEDA_JOB=job, **more)
            for rank in range(size)
        ],
        limit_s,
    )


def on_hosts(
    hosts: Hosts,
    layout: Sequence[int],
    key_file: str,
    *words: str,
    by_host: Sequence[dict[str, str]] = (),
    ways: Sequence[Sequence[str]] = (),
    is_met: bool = True,
    **more: str,
) -> list[Done]:
    """Rank i on host h = layout[i], with the variables by_host[h], started by ways[h]."""
    common = {"RUEDA_STORE": f"{hosts.ipv4(layout[0])}:{PORT}", "RUEDA_KEY_FILE": key_file,
              "RUEDA_LOG_LEVEL": "info", **more}  # fmt: skip
    done = run_all(
        [hosts.command(host, *(ways[host] if ways else ()), program(), *words) for host in layout],
        [
            environment(
                RUEDA_RANK=str(rank),
                RUEDA_SIZE=str(len(layout)),
                **common,
                **(by_host[host] if by_host else {}),
            )
            for rank, host in enumerate(layout)
        ],
        LIMIT_S,
    )
    for one in done if is_met else []:
        check_way("shm+tcp", one.stderr)
    return done


def all_well(done: Sequence[Done]) -> None:
    assert [one.returncode for one in done] == [0] * len(done), "".join(
        one.stdout + one.stderr[-2000:] for one in done
    )
