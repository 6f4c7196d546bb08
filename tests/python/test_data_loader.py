# SPDX-License-Identifier: Apache-2.0
"""Data loaders that read ahead."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from rueda.data import AsyncDataLoaderMixin, BaseDataLoader

LIMIT_S = 30


class Numbers(BaseDataLoader):
    """Epoch e has the numbers 10e, 10e + 1, ..."""

    def __init__(self, count: int, fail_at: int = -1) -> None:
        self.count = count
        self.fail_at = fail_at
        self.epoch = -1
        self.made: list[int] = []
        self.threads: set[int] = set()

    def __len__(self) -> int:
        return self.count

    def _iterate(self) -> Iterator[int]:
        self.epoch += 1
        for i in range(self.count):
            if i == self.fail_at:
                raise KeyError("no such number")
            self.threads.add(threading.get_ident())
            self.made.append(10 * self.epoch + i)
            yield self.made[-1]

    def _process_batch(self, batch: int) -> int:
        return -batch


class AsyncNumbers(AsyncDataLoaderMixin, Numbers):
    pass


def until(is_so: Any) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_plain_loader_gives_processed_batches() -> None:
    loader = Numbers(3)
    assert (len(loader), list(loader), list(loader)) == (3, [0, -1, -2], [-10, -11, -12])


@pytest.mark.parametrize("room", [1, 2, 64])
def test_epochs_come_one_after_another(room: int) -> None:
    loader = AsyncNumbers(room, count=3)
    assert [list(loader) for _ in range(3)] == [[0, -1, -2], [-10, -11, -12], [-20, -21, -22]]
    assert threading.get_ident() not in loader.threads
    loader.close_async_loader()


def test_batches_are_read_ahead_as_far_as_there_is_room() -> None:
    loader = AsyncNumbers(async_loader_queue_size=4, count=8)
    epoch = iter(loader)
    assert next(epoch) == 0
    # Four in the queue, and one that waits for its place.
    until(lambda: len(loader.made) == 6)
    time.sleep(0.1)
    assert len(loader.made) == 6
    loader.close_async_loader()


def test_the_next_epoch_is_read_before_it_is_asked_for() -> None:
    loader = AsyncNumbers(16, count=3)
    assert list(loader) == [0, -1, -2]
    until(lambda: 10 in loader.made)
    loader.close_async_loader()


def test_without_room_there_is_no_thread() -> None:
    loader = AsyncNumbers(0, count=3)
    assert list(loader) == [0, -1, -2]
    assert loader.threads == {threading.get_ident()}
    loader.close_async_loader()


def test_an_exception_comes_where_the_batch_was_asked_for() -> None:
    loader = AsyncNumbers(8, count=3, fail_at=2)
    seen = []
    with pytest.raises(KeyError, match="no such number"):
        for batch in loader:
            seen.append(batch)
    assert seen == [0, -1]


def test_a_closed_loader_can_begin_again() -> None:
    loader = AsyncNumbers(2, count=5)
    assert next(iter(loader)) == 0
    before = threading.active_count()
    loader.close_async_loader()
    assert threading.active_count() == before - 1
    assert len(list(loader)) == 5
    loader.close_async_loader()
    loader.close_async_loader()


def test_debugging_says_what_happens(capfd: pytest.CaptureFixture[str]) -> None:
    loader = AsyncNumbers(2, True, count=1)
    list(loader)
    loader.close_async_loader()
    assert "data loader: end of an epoch" in capfd.readouterr().err
