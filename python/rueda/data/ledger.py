# SPDX-License-Identifier: Apache-2.0
"""Which samples of an epoch are done, whatever the ranks are: :class:`Ledger`.

A ledger is part of an elastic state and is committed with it. It hands out samples
in portions. At a commit the ranks tell each other which portions they have used up, and
those count as done; what a lost rank had, and what was used since the last commit,
is handed out again. So after any change of the ranks each sample of an epoch is in
the model that goes on exactly once.

    ledger = Ledger(len(dataset))
    state = hvd.elastic.TorchState(model, optimizer, ledger=ledger, epoch=0)

    @hvd.elastic.run
    def train(state):
        while state.epoch < epochs:
            for indices in ledger.batches(32):
                ...
                state.commit()
            state.epoch += 1
            ledger.set_epoch(state.epoch)

Everything but :meth:`Ledger.record` is called by all ranks alike.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from rueda import _core
from rueda.common.objects import allgather_object, broadcast_object

__all__ = ["Ledger"]

Range = tuple[int, int]  # from, to; of positions in the order of the epoch
Item = TypeVar("Item")


def _merged(ranges: Iterable[Range]) -> list[Range]:
    """The same positions in as few ranges as possible, in order."""
    merged: list[Range] = []
    for start, stop in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        elif start < stop:
            merged.append((start, stop))
    return merged


def _gaps(ranges: Iterable[Range], length: int) -> list[Range]:
    """What of 0 to length is in none of these, which are in order."""
    gaps, at = [], 0
    for start, stop in ranges:
        if at < start:
            gaps.append((at, start))
        at = stop
    return [*gaps, (at, length)] if at < length else gaps


def _cut(ranges: list[Range], start: int, stop: int) -> list[Range]:
    """The part from the start-th to the stop-th position of these ranges together."""
    parts, at = [], 0
    for low, high in ranges:
        first, last = max(start, at), min(stop, at + high - low)
        if first < last:
            parts.append((low + first - at, low + last - at))
        at += high - low
    return parts


class Ledger:
    """Hands out the samples 0 to length - 1 of each epoch, each exactly once.

    ``name`` tells ledgers of one job apart. With ``shuffle`` each epoch has an order of
    its own, which ``seed`` decides, whatever the ranks are.
    """

    def __init__(
        self, length: int, name: str = "ledger", shuffle: bool = True, seed: int = 0
    ) -> None:
        if length < 0:
            raise ValueError(f"a ledger has 0 samples or more, not {length}")
        self.length = length
        self.name = name
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self._done: list[Range] = []  # all ranks agree on it
        self._mine: list[Range] = []  # used by this rank since
        # Portions that are not used yet; what reads ahead may add one that is void.
        self._open: deque[tuple[int, list[Range]]] = deque()
        self._order: tuple[int, list[int]] | None = None  # of an epoch
        self._divisions = 0  # in this term
        self._generation = 0  # portions of an older one do not count
        self.save()

    # ---- Handing out

    def batches(self, size: int) -> _Batches:
        """Iterate over lists of samples, up to ``size`` of them, which count as used at once.

        All ranks get the same number of lists. One is empty only where fewer samples are
        left than there are ranks.
        """
        return _Batches(self, size, records=True)

    def portions(self, size: int) -> _Batches:
        """As :meth:`batches`, for what reads ahead: a portion is used when :meth:`record` says so.

        May be the ``batch_sampler`` of PyTorch's DataLoader, or the generator of a
        dataset of tf.data. Iterate over that by :meth:`recorded`.
        """
        return _Batches(self, size, records=False)

    def recorded(self, batches: Iterable[Item]) -> Iterator[Item]:
        """The batches that were made of :meth:`portions`, in order; each is recorded."""
        generation = None
        for batch in batches:
            # The first one has divided what is left.
            if generation is None:
                generation = self._generation
            if generation != self._generation:
                return
            self.record()
            yield batch

    def record(self) -> None:
        """The oldest portion of this rank is used up; the next commit makes it done."""
        generation, ranges = self._open.popleft()
        while generation != self._generation:
            generation, ranges = self._open.popleft()
        self._mine += ranges

    def steps(self, total: int, portion: int) -> Iterator[Iterator[list[int]]]:
        """For each step iterate over portions, of ``total`` samples on all ranks together.

        A rank takes another portion of up to ``portion`` samples when it has used one, until
        those of the step are gone, so a rank that is twice as fast has twice as many.
        It may have none. In an elastic job the launcher's store hands them out; in
        another one each rank gets its fixed share.
        """
        if total < 1 or portion < 1:
            raise ValueError("a step and a portion have one sample or more")
        left, key, generation = self._divide()
        count = sum(stop - start for start, stop in left)
        counter = _Counter(key)
        first = 0  # portion of the step
        for step in _shares(count, -(-count // total)):
            cut = _cut(left, *step)
            portions = -(-(step[1] - step[0]) // portion)
            yield self._take(cut, portion, first, portions, counter, generation)
            first += portions

    # ---- What the elastic state calls

    def agree(self) -> None:
        """Make done what any rank has used; all ranks do so, before they save."""
        parts = allgather_object(_merged(self._mine), name=f"rueda.ledger.{self.name}")
        self._done = _merged([*self._done, *(one for part in parts for one in part)])
        self._mine = []

    def save(self) -> None:
        self._saved = (self.epoch, self._done)

    def restore(self) -> None:
        self.epoch, self._done = self._saved
        self._forget()

    def sync(self) -> None:
        """Know what rank 0 knows."""
        self.epoch, self._done = broadcast_object(
            (self.epoch, self._done), name=f"rueda.ledger.{self.name}"
        )
        self._forget()
        self.save()

    def reset(self) -> None:
        """The ranks are others: portions that are not used are void."""
        self._forget()
        self._divisions = 0

    def state_dict(self) -> dict[str, Any]:
        """What was saved last."""
        epoch, done = self._saved
        return {"length": self.length, "epoch": epoch, "done": done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["length"] != self.length:
            raise ValueError(
                f"the ledger {self.name!r} was kept with {state['length']} samples, and there "
                f"are {self.length} now"
            )
        self.epoch, self._done = state["epoch"], list(state["done"])
        self._forget()
        self.save()

    # ---- Epochs

    def set_epoch(self, epoch: int) -> None:
        """Begin this epoch, of which nothing is done yet."""
        self.epoch = epoch
        self._done = []
        self._forget()

    def left(self) -> int:
        """Samples of the epoch that are not done, as of the last commit."""
        return self.length - sum(stop - start for start, stop in self._done)

    # ---- Inside

    def _forget(self) -> None:
        self._mine = []
        self._open.clear()
        self._generation += 1

    def _divide(self) -> tuple[list[Range], str, int]:
        """What is left, which all ranks see alike, and a name for this division of it."""
        self.agree()
        self._open.clear()
        self._generation += 1
        self._divisions += 1
        key = f"{_core.elastic_term()}/ledger/{self.name}/{self._divisions}"
        return _gaps(self._done, self.length), key, self._generation

    def _samples(self, ranges: list[Range]) -> list[int]:
        if self._order is None or self._order[0] != self.epoch:
            order = list(range(self.length))
            if self.shuffle:
                random.Random(self.seed + self.epoch).shuffle(order)
            self._order = (self.epoch, order)
        order = self._order[1]
        return [sample for start, stop in ranges for sample in order[start:stop]]

    def _take(
        self, cut: list[Range], portion: int, first: int, count: int, counter: _Counter,
        generation: int,
    ) -> Iterator[list[int]]:  # fmt: skip
        """The portions of one step that this rank gets."""
        while generation == self._generation:
            number = counter.peek() - first
            if number >= count:
                return  # it is of a later step, and kept for that
            counter.drop()
            ranges = _cut(cut, number * portion, (number + 1) * portion)
            yield self._samples(ranges)
            # This rank comes back for more, so it has used it.
            if generation == self._generation:
                self._mine += ranges


class _Counter:
    """Numbers that each go to one rank."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._number: int | None = None
        self._next = _core.rank()

    def peek(self) -> int:
        """The number that this rank has now."""
        if self._number is None:
            self._number = self._draw()
        return self._number

    def drop(self) -> None:
        self._number = None

    def _draw(self) -> int:
        if _core.elastic_term() > 0:
            return _core.elastic_add(self._key, 1) - 1
        number, self._next = self._next, self._next + _core.size()
        return number


class _Batches:
    """An iterable that divides what is left each time that it is iterated over."""

    def __init__(self, ledger: Ledger, size: int, records: bool) -> None:
        if size < 1:
            raise ValueError("a batch has one sample or more")
        self._ledger, self._size, self._records = ledger, size, records

    def __len__(self) -> int:
        """As of the last commit."""
        return -(-self._ledger.left() // (self._size * _core.size()))

    def __iter__(self) -> Iterator[list[int]]:
        ledger = self._ledger
        left, _, generation = ledger._divide()
        count = sum(stop - start for start, stop in left)
        ranks, rank = _core.size(), _core.rank()
        shares = _shares(count, ranks * -(-count // (self._size * ranks)))
        return self._hand_out(left, shares[rank::ranks], generation)

    def _hand_out(
        self, left: list[Range], shares: list[Range], generation: int
    ) -> Iterator[list[int]]:
        ledger = self._ledger
        for share in shares:
            if generation != ledger._generation:
                return
            ranges = _cut(left, *share)
            ledger._open.append((generation, ranges))
            if self._records:
                ledger.record()
            yield ledger._samples(ranges)


def _shares(count: int, parts: int) -> list[Range]:
    """0 to count in parts of nearly the same length."""
    return [(count * i // parts, count * (i + 1) // parts) for i in range(parts)]
