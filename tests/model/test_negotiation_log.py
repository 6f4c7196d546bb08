# SPDX-License-Identifier: Apache-2.0
"""Log mode holds in every order of events, and breaking its rules shows."""

from __future__ import annotations

import pytest
from explore import Broken, explore
from negotiation_log import ERROR, JOIN, JOINED, RUN, UNNAMED, WAIT, LogMode

# The parents of the ranks, and who shares memory with its parent.
CHAIN = {"parent": (None, 0, 1)}
STAR = {"parent": (None, 0, 0)}
TWO_HOSTS = {"parent": (None, 0, 1), "in_host": {2}}
FOUR_IN_TWO_HOSTS = {"parent": (None, 0, 0, 2), "in_host": {1, 3}}
FOUR_IN_A_TREE = {"parent": (None, 0, 0, 2)}
TREES = {"chain": CHAIN, "star": STAR, "two hosts": TWO_HOSTS}

A, B, C = (("a", "sum f4"), ("b", "sum f4"), ("c", "sum f4"))
A_INT = ("a", "sum i4")
GATHER_A = ("a", "gather f4")
NONE = (UNNAMED, "sum f4")


def on_all(*threads, size=3):
    """A script of the same threads for each member."""
    return (threads,) * size


# What members do, and in how many slots. Threads of a member race.
SCRIPTS = {
    "three names in three orders": (
        (((A, B, C),), ((C, B), (A,)), ((B,), (C, A))), 2),
    "a name again and again": (on_all((A, WAIT, A, WAIT, A)), 1),
    "names in different orders, twice": (
        (((A, B, WAIT, A, B),), ((B, WAIT, B), (A, WAIT, A)), ((B, A, WAIT, B, A),)), 2),
    "more names than slots": (on_all((A, WAIT, A), (B, WAIT, B)), 1),
    "more names than slots, in turn": (
        on_all((A, WAIT, B, WAIT, A, B, WAIT, A, C, WAIT, C)), 1),
    "one slot that three names want": (
        on_all((A, WAIT, B, C, A, WAIT, B)), 1),
    "more names than two slots": (
        on_all((A, B, C, WAIT, C, A)), 2),
    "everybody changes the signature": (
        on_all((A, WAIT, A_INT, WAIT, A_INT, WAIT, A)), 1),
    "changed signatures beside other names": (
        on_all((A, WAIT, A_INT, WAIT, A_INT), (B,)), 2),
    "a mismatch, then the name again": (
        (((A, WAIT, A),), ((A, WAIT, A),), ((A_INT, WAIT, A),)), 1),
    "a mismatch of a name that has a slot": (
        (((A, WAIT, A, WAIT, A),), ((A, WAIT, A_INT, WAIT, A),), ((A, WAIT, A, WAIT, A),)), 1),
    "a mismatch beside other names": (
        (((A, WAIT, A), (B,)), ((A_INT, B, WAIT, A),), ((B, A, WAIT, A),)), 1),
    "one name for two kinds": (
        (((A, WAIT, A),), ((GATHER_A, WAIT, A),), ((A, WAIT, A),)), 1),
    "unnamed operations": (on_all((NONE, NONE, WAIT, A, NONE)), 1),
    "unnamed operations, a mismatch": (
        (((NONE, NONE),), ((NONE, NONE),), (((UNNAMED, "sum i4"), NONE),)), 1),
}
JOINS = {
    "one joins early": (
        (((A, WAIT, JOIN, A),), ((A, WAIT, B, WAIT, JOIN, A),), ((JOIN, A),)), 1),
    "two join early": (
        (((A, WAIT, A, WAIT, JOIN, B),), ((JOIN, B),), ((JOIN, B),)), 1),
    "the leader joins early": (
        (((A, WAIT, JOIN, A),), ((JOIN, A),), ((A, WAIT, B, JOIN, A),)), 1),
    "joins with operations in flight": (
        (((JOIN, A, B),), ((A, JOIN, A, B),), ((B, JOIN, A, B),)), 2),
    "joins with operations in flight, few slots": (
        (((A, WAIT, B, JOIN, A, B),), ((A, WAIT, B, A, JOIN, A, B),),
         ((A, WAIT, A, B, JOIN, B, A),)), 1),
    "joins, and everything twice": (on_all((A, JOIN, A, JOIN, A)), 1),
    "unnamed operations around a join": (
        (((NONE, NONE, WAIT, JOIN, NONE),), ((NONE, WAIT, JOIN, NONE),), ((JOIN, NONE),)), 0),
    "a gather that one does not give": (
        (((GATHER_A, WAIT, JOIN, GATHER_A),), ((GATHER_A, WAIT, JOIN, GATHER_A),),
         ((JOIN, GATHER_A),)), 1),
    "a gather given before joining": (
        (((GATHER_A, JOIN),), ((GATHER_A, B, JOIN),), ((GATHER_A, JOIN),)), 1),
    "a mismatch while one has joined": (
        (((A, WAIT, JOIN),), ((A_INT, WAIT, JOIN),), ((JOIN,),)), 1),
}
# Depending on who is faster, a member stays alone with a name at the end.
STALLS = {
    "a name given by two threads": (
        (((A,), (A,), (B,)), ((A, WAIT, A), (B,)), ((B, A),)), 1),
    "a name given by two threads, and joins": (
        (((A, WAIT, JOIN), (A,)), ((A, WAIT, JOIN), (A,)), ((JOIN,),)), 1),
    "a thread submits while another joins": (
        (((JOIN,), (A,)), ((A, JOIN),), ((A, JOIN),)), 1),
    "joins by threads, few slots": (
        (((A, WAIT, A), (B, WAIT, JOIN)), ((A, WAIT, JOIN), (B,)), ((A, B, JOIN),)), 1),
    "a mismatch and a thread, while one has joined": (
        (((A, WAIT, JOIN),), ((A_INT, WAIT, JOIN),), ((JOIN, A), (B,))), 1),
}
FOUR = {
    "four ranks in two hosts": (
        (((A, B),), ((B, A),), ((A,), (B,)), ((B, A),)), 1),
    "four ranks, more names than slots": (on_all((A, B, WAIT, B, A), size=4), 1),
    "four ranks join": (
        (((A, JOIN, A),), ((JOIN, A),), ((B, JOIN, A),), ((A, WAIT, B, JOIN, A),)), 1),
}
DEATHS = {
    "names in two orders": ((((A, B),), ((B,), (A,)), ((B, A),)), 1),
    "a name twice, one slot": (on_all((A, WAIT, B, A)), 1),
    "a mismatch": ((((A, B),), ((A_INT, B),), ((B, A),)), 1),
    "joins": ((((A, JOIN),), ((JOIN,),), ((B, JOIN),)), 1),
}


def with_trees(scripts: dict, trees: dict) -> list:
    return [
        pytest.param(*scripts[name], trees[tree], id=f"{name}, {tree}")
        for name in scripts
        for tree in trees
    ]


@pytest.mark.parametrize(
    ("scripts", "slots", "tree"),
    with_trees({**SCRIPTS, **JOINS}, TREES)
    + with_trees(FOUR, {"two hosts": FOUR_IN_TWO_HOSTS, "tree": FOUR_IN_A_TREE}),
)
def test_everything_is_delivered_in_every_order_of_events(scripts, slots, tree) -> None:
    assert explore(LogMode(scripts, slots, **tree)).ends


@pytest.mark.parametrize(("scripts", "slots", "tree"), with_trees(STALLS, TREES))
def test_only_what_a_member_never_gives_is_waited_for(scripts, slots, tree) -> None:
    assert explore(LogMode(scripts, slots, **tree, stalls=True)).ends


@pytest.mark.parametrize("rank", range(3))
@pytest.mark.parametrize("name", DEATHS)
def test_nobody_waits_for_the_dead(name: str, rank: int) -> None:
    scripts, slots = DEATHS[name]
    assert explore(LogMode(scripts, slots, deaths=(rank,))).ends


def logs_of(name: str) -> list:
    """Every log that the script can lead to."""
    scripts, slots = {**SCRIPTS, **JOINS}[name]
    return [end.log for end in explore(LogMode(scripts, slots)).ends]


def kinds(log: tuple) -> list:
    return [entry[0] for entry in log]


def test_a_mismatch_is_one_error_and_the_next_use_runs() -> None:
    expected = ((ERROR, "a", (("sum f4", 0), ("sum i4", 2))), RUN)
    for log in logs_of("a mismatch, then the name again"):
        assert (log[0], log[1][0]) == expected
        assert len(log) == 2


def test_a_mismatch_of_kinds_is_an_error_too() -> None:
    for log in logs_of("one name for two kinds"):
        assert log[0] == (ERROR, "a", (("gather f4", 1), ("sum f4", 0)))


def test_what_is_given_before_joining_runs_with_zeros_of_the_others() -> None:
    for log in logs_of("joins with operations in flight"):
        joined = kinds(log).index(JOINED)
        counts = {op.name: op.count for entry in log[:joined] for op in entry[1]}
        assert counts == {"a": 1, "b": 1}


def test_whether_a_gather_fails_does_not_depend_on_who_is_faster() -> None:
    for log in logs_of("a gather that one does not give"):
        assert kinds(log) == [ERROR, JOINED, RUN]
    for log in logs_of("a gather given before joining"):
        assert ERROR not in kinds(log)


def test_every_member_can_be_the_last_to_join() -> None:
    logs = logs_of("joins with operations in flight")
    assert {log[kinds(log).index(JOINED)][1] for log in logs} == {0, 1, 2}


def test_operations_ready_together_can_be_fused_and_need_not_be() -> None:
    lengths = {len(log) for log in logs_of("three names in three orders")}
    assert lengths == {1, 2, 3}


def test_slots_are_used_again_when_all_have_acknowledged() -> None:
    logs = logs_of("more names than slots, in turn")
    given = {tuple(op.name for e in log for op in e[1] if op.is_new) for log in logs}
    assert any(len(set(names)) > 1 for names in given)


# What goes wrong without a rule, and a script that shows it.
FAULTS = {
    "all_but_one": (SCRIPTS, "three names in three orders"),
    "no_acknowledgement": (SCRIPTS, "one slot that three names want"),
    "log_to_all": (JOINS, "one joins early"),
    "error_at_once": (SCRIPTS, "a mismatch, then the name again"),
    "kind_in_key": (SCRIPTS, "one name for two kinds"),
    "count_joined": (JOINS, "joins with operations in flight"),
    "join_first": (JOINS, "joins with operations in flight"),
    "joined_at_once": (JOINS, "joins with operations in flight"),
    "joined_so_far": (JOINS, "a gather that one does not give"),
    "unnamed_go_on": (JOINS, "unnamed operations around a join"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_missing_rule_is_found(fault: str) -> None:
    where, name = FAULTS[fault]
    scripts, slots = where[name]
    with pytest.raises(Broken, match="broken after these events"):
        explore(LogMode(scripts, slots, faults=[fault]))


def test_a_failure_that_is_not_passed_on_is_found() -> None:
    scripts, slots = DEATHS["names in two orders"]
    with pytest.raises(Broken, match="does not know that 0 has died"):
        explore(LogMode(scripts, slots, deaths=(0,), faults=["not_passed_on"]))
