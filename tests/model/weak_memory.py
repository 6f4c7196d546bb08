# SPDX-License-Identifier: Apache-2.0
"""Threads on a machine that reorders loads and stores, such as aarch64.

A thread is a list of instructions. Any of them may happen next unless it has to come
after one that has not happened yet. As on ARMv8 there is one memory, whose stores all
threads see at the same time; what is weak is the order in which a thread reaches it.

Instruction j of a thread comes after an earlier i if

1.  either is a fence;
2.  i is an acquire load, or j is a release store;
3.  i is a sequentially consistent store, and j such a load;
4.  both touch the same place;
5.  j stores what i has loaded, or is a store that depends on it by a branch. A *load*
    behind a branch may come early: the machine guesses the branch.

A read-modify-write is a load and a store, as LDAXR and STLXR are: another instruction of
the thread may happen between them, but no store of another thread to that place.

Mutexes and conditions are not modelled; what is, is whether a thread that sleeps and one
that wakes sleepers can miss each other. Of C11's orders, relaxed, acquire, release and
sequentially consistent are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

ACQUIRES = {"acquire", "seq_cst"}
RELEASES = {"release", "seq_cst"}

Registers = Mapping[str, int]


def always(_registers: Registers) -> bool:
    return True


class Step(NamedTuple):
    """One access to memory, or a fence."""

    kind: str  # "load", "store" or "fence"
    place: str = ""
    order: str = "relaxed"
    register: str = ""  # what a load fills
    value: Callable[[Registers], int] | int = 0  # what a store writes
    needs: tuple[str, ...] = ()  # registers that value and when read
    when: Callable[[Registers], bool] = always  # else it is skipped
    pair: int = 0  # not 0: the load or the store of one read-modify-write


def fence() -> Step:
    return Step("fence")


def load(register: str, place: str, order: str = "relaxed", **more) -> Step:
    return Step("load", place, order, register=register, **more)


def store(place: str, value, order: str = "relaxed", **more) -> Step:
    return Step("store", place, order, value=value, **more)


_pairs = iter(range(1, 1_000_000))


def exchange(register: str, place: str, value, order: str = "seq_cst", **more) -> tuple[Step, Step]:
    """Load the old value into register and store the new one, which may depend on it."""
    pair = next(_pairs)
    needs = (*more.pop("needs", ()), register)
    got = Step("load", place, "acquire" if order in ACQUIRES else "relaxed", register, pair=pair)
    put = Step(
        "store", place, order if order in RELEASES else "relaxed",
        value=value, needs=needs, pair=pair, **more,
    )  # fmt: skip
    return got, put


class State(NamedTuple):
    memory: tuple[tuple[str, int], ...]
    done: tuple[int, ...]  # for each thread a bit for each instruction
    registers: tuple[tuple[tuple[str, int], ...], ...]
    claims: tuple[tuple[str, int], ...] = ()  # place and pair: loaded, not stored yet


def _must_follow(i: Step, j: Step) -> bool:
    """Does j, a later instruction of the same thread, wait for i?"""
    if "fence" in (i.kind, j.kind):
        return True
    if i.kind == "load" and i.order in ACQUIRES:
        return True
    if j.kind == "store" and j.order in RELEASES:
        return True
    if i.kind == "store" and i.order == "seq_cst" and j.kind == "load":
        return j.order in ("seq_cst",) or i.place == j.place
    return i.place == j.place or (j.kind == "store" and i.register in j.needs)


class Machine:
    """Programs for explore(): threads, what memory holds first, and what must be true in
    the end of all threads' registers and of memory."""

    def __init__(
        self,
        threads: Mapping[str, list],
        verdict: Callable[[Registers], str | None],
        memory: Mapping[str, int] | None = None,
    ):
        self.names = tuple(threads)
        self.threads = [self._flat(steps) for steps in threads.values()]
        self.verdict = verdict
        places = {step.place for thread in self.threads for step in thread if step.place}
        self.memory = dict.fromkeys(sorted(places), 0) | dict(memory or {})
        self.after = [
            [
                sum(1 << i for i in range(j) if _must_follow(thread[i], thread[j]))
                for j in range(len(thread))
            ]
            for thread in self.threads
        ]

    @staticmethod
    def _flat(steps: list) -> list[Step]:
        flat: list[Step] = []
        for step in steps:
            flat.extend([step] if isinstance(step, Step) else step)
        return flat

    def start(self) -> State:
        count = len(self.threads)
        return State(tuple(self.memory.items()), (0,) * count, ((),) * count)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for number, thread in enumerate(self.threads):
            for at, step in enumerate(thread):
                done = state.done[number]
                if done >> at & 1 or self.after[number][at] & ~done:
                    continue
                following = self._take(state, number, at, step)
                if following is not None:
                    yield self._words(state, number, step), following

    def _take(self, state: State, number: int, at: int, step: Step) -> State | None:
        registers = dict(state.registers[number])
        memory = dict(state.memory)
        claims = dict(state.claims)
        if any(name not in registers for name in step.needs):
            return None
        happens = step.kind == "load" or step.when(registers)
        if step.kind == "store" and happens and claims.get(step.place, step.pair) != step.pair:
            return None
        if step.kind == "load" and step.pair and step.place in claims:
            return None
        if step.kind == "load":
            registers[step.register] = memory[step.place]
            if step.pair:
                claims[step.place] = step.pair
        elif step.kind == "store":
            if happens:
                value = step.value
                memory[step.place] = value(registers) if callable(value) else value
            if step.pair:
                del claims[step.place]
        done = state.done[number] | 1 << at
        return State(
            tuple(memory.items()),
            (*state.done[:number], done, *state.done[number + 1 :]),
            (
                *state.registers[:number],
                tuple(sorted(registers.items())),
                *state.registers[number + 1 :],
            ),
            tuple(sorted(claims.items())),
        )

    def _words(self, state: State, number: int, step: Step) -> str:
        return f"{self.names[number]}: {step.kind} {step.place} {step.order} {step.register}"

    def complaint(self, state: State) -> str | None:
        if any(done != (1 << len(t)) - 1 for done, t in zip(state.done, self.threads, strict=True)):
            return "a thread is not at its end"
        return self.verdict(
            dict(state.memory) | {k: v for thread in state.registers for k, v in thread}
        )
