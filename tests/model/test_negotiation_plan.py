# SPDX-License-Identifier: Apache-2.0
"""Plan mode holds in every order of events, and breaking its rules shows."""

from __future__ import annotations

from functools import cache

import pytest
from explore import Broken, Found, explore
from negotiation_plan import BROADCAST, ERROR, HALT, JOIN, PLAN, RESUME, RUN, WAIT, PlanMode

A, B, C, UNKNOWN = (("a", "sum"), ("b", "sum"), ("c", "sum"), ("z", "sum"))
OTHER_A = ("a", "max")
SHARED = ("a", BROADCAST)


def on_all(*threads):
    """A script of the same threads for each member."""
    return (threads,) * 3


# What members do, the plan, and more about it. Threads of a member race.
SCRIPTS = {
    "three batches": (on_all((A, B, WAIT, A)), ((A,), (B,)), {}),
    "a fused batch and another": (
        (((A, C, B),), ((B, A, C),), ((C,), (A, B))), ((A, B), (C,)), {}),
    "not in the order of the plan": (
        (((A, B),), ((A,), (B,)), ((B, A),)), ((A,), (B,)), {}),
    "a plan at any time": (on_all((A, B)), ((A,), (B,)), {"learned": False}),
    "two plans": (on_all((A, WAIT, A)), ((A,),), {"plans": 2}),
    "two plans at any time": (
        on_all((A, WAIT, A)), ((A,),), {"plans": 2, "learned": False, "triggers": "ad"}),
    "an unknown operation": (
        (((A, UNKNOWN),), ((UNKNOWN, A),), ((A, UNKNOWN),)), ((A,),), {}),
    "an unknown operation between": (
        (((A, UNKNOWN, B),), ((A, B, UNKNOWN),), ((A, UNKNOWN, B),)), ((A,), (B,)),
        {"triggers": "abc"}),
    "an unknown operation, and a plan at any time": (
        (((A, UNKNOWN),), ((UNKNOWN, A),), ((A, UNKNOWN),)), ((A,),),
        {"learned": False, "triggers": "abc"}),
    "a mismatch, then the name again": (
        (((A, WAIT, A),), ((OTHER_A, WAIT, A),), ((A, WAIT, A),)), ((A,),), {}),
    "all change a signature": (on_all((A, WAIT, OTHER_A)), ((A,),), {}),
    "less than the plan": (on_all((A, WAIT, A)), ((A, B),), {}),
    "the second batch only": (on_all((B, WAIT, B)), ((A,), (B,)), {}),
    "one joins early": (
        (((A, WAIT, JOIN),), ((A, WAIT, JOIN),), ((JOIN,),)), ((A,),), {"plans": 2}),
    "joins with operations in flight": (
        (((JOIN,),), ((JOIN,),), ((A, UNKNOWN, JOIN),)), ((A,),), {}),
    "joins after a batch": (
        (((A, WAIT, A, WAIT, JOIN),), ((A, WAIT, JOIN),), ((A, WAIT, JOIN),)), ((A,),), {}),
}


@cache
def found(name: str) -> Found:
    """All that a script can lead to."""
    scripts, plan, more = SCRIPTS[name]
    return explore(PlanMode(scripts, plan, **more))


@pytest.mark.parametrize("name", SCRIPTS)
def test_everything_is_delivered_in_every_order_of_events(name: str) -> None:
    assert found(name).ends


@pytest.mark.parametrize("name", [
    "not in the order of the plan", "an unknown operation", "less than the plan", "two plans",
    "a mismatch, then the name again", "one joins early", "joins with operations in flight",
])
def test_the_grace_alone_keeps_members_from_hanging(name: str) -> None:
    scripts, plan, more = SCRIPTS[name]
    assert explore(PlanMode(scripts, plan, **{**more, "triggers": "c"})).ends


@pytest.mark.parametrize(("scripts", "more"), [
    (on_all((A,)), {"learned": False}),
    (on_all((A,)), {"plans": 2, "triggers": "d"}),
    (on_all((UNKNOWN,)), {"plans": 2, "learned": False}),
])
def test_announcements_need_no_generation(scripts, more) -> None:
    assert explore(PlanMode(scripts, ((A,),), **more, whole=True)).ends


@pytest.mark.parametrize("rank", range(3))
@pytest.mark.parametrize("name", ["an unknown operation", "less than the plan"])
def test_nobody_waits_for_the_dead(name: str, rank: int) -> None:
    scripts, plan, more = SCRIPTS[name]
    assert explore(PlanMode(scripts, plan, **more, deaths=(rank,))).ends


def logs_of(name: str) -> list:
    """The kinds of entries of every log that the script can lead to."""
    return [[entry[0] for entry in end.log] for end in found(name).ends]


def test_a_plan_that_fits_needs_no_entry_at_all() -> None:
    assert [PLAN] in logs_of("three batches")


def test_batches_that_all_have_started_are_kept() -> None:
    logs = [end.log for end in found("three batches").ends]
    kept = {entry[2] for log in logs for entry in log if entry[0] == RESUME}
    assert kept == {0, 1, 2, 3}


def test_a_mismatch_is_one_error_and_the_next_use_runs() -> None:
    for log in logs_of("a mismatch, then the name again"):
        assert log == [PLAN, HALT, RESUME, ERROR, RUN]


# What goes wrong without a rule, and a script that shows it.
FAULTS = {
    "keep_most": "an unknown operation",
    "no_generation": "two plans",
    "join_not_last": "joins with operations in flight",
    "starts_when_stopped": "three batches",
    "cancelled_is_silent": "an unknown operation",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_missing_rule_is_found(fault: str) -> None:
    scripts, plan, more = SCRIPTS[FAULTS[fault]]
    with pytest.raises(Broken, match="broken after these events"):
        explore(PlanMode(scripts, plan, **more, faults=[fault]))


def test_records_cleared_too_early_are_found() -> None:
    with pytest.raises(Broken, match="announces z twice"):
        explore(PlanMode(on_all((UNKNOWN,)), ((A,),), whole=True, faults=["cleared_at_plan"]))


def test_a_planned_broadcast_is_found() -> None:
    with pytest.raises(Broken, match="which a member has completed|which is cancelled"):
        explore(PlanMode(on_all((SHARED, WAIT, B)), ((SHARED,), (B,))))


def test_without_the_grace_members_hang_unseen() -> None:
    with pytest.raises(Broken, match="nothing more happens"):
        explore(PlanMode(on_all((B,)), ((A,), (B,)), triggers="abd"))
