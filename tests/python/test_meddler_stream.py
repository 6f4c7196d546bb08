# SPDX-License-Identifier: Apache-2.0
"""Somebody on the way, without the key, takes bytes out of a stream, or puts some in.

TCP itself does not notice, as the meddler changes its numbers to fit.
"""

from __future__ import annotations

from typing import Callable

import pytest
from cluster import Hosts
from ranks import program
from test_meddler import ADD, PORT, meddler, run, words_of

MakeHosts = Callable[[int], Hosts]

DONE = {"drop": "dropped", "cut": "cut", "replay": "replayed", "swap": "swapped"}
ADD_DIFFERENT = program("add_different.py")
REFUSED = "it sent what its key does not prove"


@pytest.mark.parametrize("setting", ["authenticate", "always"])
@pytest.mark.parametrize("edit", list(DONE))
def test_tensors_are_not_taken_from_a_stream_that_was_edited(
    make_hosts: MakeHosts, key_file: str, edit: str, setting: str
) -> None:
    """In the middle of 800 KB, where the store does not come."""
    hosts = make_hosts(2)
    with meddler(hosts, f"{edit}:0:100000=") as said:
        done = run(hosts, key_file, ADD_DIFFERENT, RUEDA_ENCRYPT=setting)
    assert said == [f"{DONE[edit]}\n"]
    assert [one.returncode for one in done] == [1, 1], words_of(done)
    refusals = [line for line in words_of(done).splitlines() if REFUSED in line and "lost" in line]
    assert len([line for line in refusals if " tcp: " in line]) == 1, words_of(done)


STORE_EDITS = [
    ("drop", 0, "the peer does not speak the protocol of rueda"),
    ("cut", 0, "the peer closed the connection 91 bytes into its hello"),
    ("replay", 0, "the peer's proof is wrong"),
    ("replay", 150, "it was changed on the way"),
    # What the store waits for never comes: the rank loses patience, and there is
    # nothing to refuse.
    ("drop", 150, None),
    ("cut", 150, None),
]


@pytest.mark.parametrize("edit, count, why", STORE_EDITS)
def test_edits_of_what_the_store_hears_end_that_connection_only(
    make_hosts: MakeHosts, key_file: str, edit: str, count: int, why: str | None
) -> None:
    """The handshake takes 150 bytes. The rank connects again, and nothing is done twice."""
    hosts = make_hosts(2)
    with meddler(hosts, f"{edit}:{PORT}:{count}=") as said:
        done = run(hosts, key_file, ADD)
    assert said == [f"{DONE[edit]}\n"]
    assert [one.returncode for one in done] == [0, 0], words_of(done)
    assert [one.stdout for one in done] == ["3\n", "3\n"]
    refusals = [line for line in done[0].stderr.splitlines() if "the store refused" in line]
    if why is None:
        assert refusals == []
        return
    assert len(refusals) == 1, words_of(done)
    assert f"from {hosts.ipv4(1)}:" in refusals[0]
    assert why in refusals[0]
