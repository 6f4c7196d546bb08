# SPDX-License-Identifier: Apache-2.0
"""The places where Rueda's threads and ranks meet without a lock, on a weak machine.

Each function gives the machine for one of them, with the orders of the C code; `without`
names what is left out or weakened, which a test expects to be found. A place in memory
is 0 at first; registers that must be told apart have names of their own.
"""

from __future__ import annotations

from weak_memory import Machine, Step, exchange, fence, load, store


def _fence(name: str, without: str) -> list[Step]:
    return [] if name == without else [fence()]


def _order(name: str, without: str, order: str) -> str:
    return "relaxed" if name == without else order


def queue(without: str = "") -> Machine:
    """`push()` and `collect()` of op/op.c: who finds an operation sees what is in it."""
    push = _order("push", without, "seq_cst")
    take = _order("take", without, "acquire")
    return Machine(
        {
            "submitter": [store("operation", 7), exchange("before", "arrived", 1, push)],
            "holder": [
                exchange("found", "arrived", 0, take),
                load("seen", "operation"),
            ],
        },
        lambda r: "an operation is empty" if r["found"] and r["seen"] != 7 else None,
    )


def delivery(without: str = "") -> Machine:
    """`rueda_op_deliver()` and `rueda_op_status()`, and each counter of a slab and notice
    of a pipe: who sees the number sees the bytes before it."""
    return Machine(
        {
            "holder": [
                store("result", 7),
                store("status", 1, _order("deliver", without, "release")),
            ],
            "waiter": [
                load("status_seen", "status", _order("look", without, "acquire")),
                load("seen", "result"),
            ],
        },
        lambda r: "a result is not there yet" if r["status_seen"] and r["seen"] != 7 else None,
    )


def doorbell(without: str = "") -> Machine:
    """`rueda_segment_arm()` and `rueda_segment_notify()`: a rank that goes to sleep looks
    once more for what another rank has written, or that one rings."""
    return Machine(
        {
            "sleeper": [
                store("sleeping", 1),
                *_fence("arm", without),
                load("found", "written", "acquire"),
            ],
            "notifier": [
                store("written", 1, "release"),
                *_fence("notify", without),
                load("asleep", "sleeping"),
            ],
        },
        lambda r: "a wake-up is lost" if not r["found"] and not r["asleep"] else None,
    )


def sleeping_holder(without: str = "") -> Machine:
    """`rueda_op_push()`, then `rueda_segment_is_asleep()`: the holder sleeps, or is about
    to, and an operation is submitted."""
    return Machine(
        {
            "submitter": [
                exchange("before", "arrived", 1, _order("push", without, "seq_cst")),
                load("asleep", "sleeping", _order("is_asleep", without, "seq_cst")),
            ],
            "holder": [
                store("sleeping", 1),
                *_fence("arm", without),
                load("found", "arrived"),
            ],
        },
        lambda r: "an operation is left alone" if not r["found"] and not r["asleep"] else None,
    )


def parked(without: str = "") -> Machine:
    """`park()` of wait.c and `rueda_drive_let_go()`: a caller waits for the token. The
    mutex, which the caller holds until it waits, lets no broadcast come before that."""
    strong = _order("let_go", without, "seq_cst")
    return Machine(
        {
            "caller": [
                exchange("others", "parked", 1),
                *_fence("park", without),
                load("taken", "token", "seq_cst"),
            ],
            "holder": [store("token", 0, strong), load("waits", "parked", strong)],
        },
        lambda r: "a caller waits for ever" if r["taken"] and not r["waits"] else None,
        {"token": 1},
    )


def background(without: str = "") -> Machine:
    """`do_duty()` of background.c, `rueda_drive_let_go()` and `see_to_progress()`: the
    background thread was told before, and finds the token taken; the holder gives it back;
    an operation is submitted meanwhile. One of the three must see the operation, or tell."""
    strong = _order("let_go", without, "seq_cst")
    return Machine(
        {
            "submitter": [
                exchange("before", "arrived", 1),
                load("told", "is_told", "seq_cst"),
            ],
            "background": [
                store("is_told", 0, "seq_cst"),
                *_fence("do_duty", without),
                load("token_seen", "token"),
                *exchange(
                    "token_taken", "token", 1,
                    when=lambda r: not r["token_seen"] and not r["token_taken"],
                    needs=("token_seen",),
                ),
                load("found_by_background", "arrived"),
            ],
            "holder": [
                store("token", 0, strong),
                load("parked_seen", "parked", strong),
                load("found_by_holder", "arrived"),
            ],
        },
        _is_left_alone,
        {"token": 1, "is_told": 1},
    )  # fmt: skip


def _is_left_alone(r) -> str | None:
    has_taken = not r["token_seen"] and not r["token_taken"]
    is_seen = (has_taken and r["found_by_background"]) or r["found_by_holder"]
    return None if is_seen or not r["told"] else "an operation is left alone"
