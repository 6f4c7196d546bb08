# SPDX-License-Identifier: Apache-2.0
"""A base for data loaders, and a mixin that reads ahead.

    class MyLoader(BaseDataLoader): ...
    class MyAsyncLoader(AsyncDataLoaderMixin, MyLoader): ...

    loader = MyAsyncLoader(async_loader_queue_size=16, path=...)
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["AsyncDataLoaderMixin", "BaseDataLoader"]

# How long a thread sleeps at most before it looks whether it is still wanted.
_LOOK_S = 0.2
# How long closing waits for a loader that is busy with a batch.
_CLOSE_S = 10.0


class BaseDataLoader:
    """Batches of an epoch, as ``_iterate()`` makes and ``_process_batch()`` finishes them."""

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        raise NotImplementedError

    def _iterate(self) -> Iterator[Any]:
        """Yield the batches of one epoch."""
        raise NotImplementedError

    def _process_batch(self, batch: Any) -> Any:
        """Finish a batch, in the thread that asked for it."""
        return batch

    def __iter__(self) -> Iterator[Any]:
        for batch in self._iterate():
            yield self._process_batch(batch)


class _EndOfEpoch:
    """Comes after the last batch of an epoch."""


class _Failure:
    """Carries an exception from the thread that reads to the one that asked."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Reader(threading.Thread):
    """Runs epoch after epoch of a loader into a queue of limited length."""

    def __init__(self, loader: Any, room: int) -> None:
        super().__init__(name="rueda-data-loader", daemon=True)
        self.batches: queue.Queue[Any] = queue.Queue(room)
        self.is_closed = threading.Event()
        self._loader = loader

    def run(self) -> None:
        try:
            while not self.is_closed.is_set():
                for batch in self._loader._iterate():
                    if not self._put(batch):
                        return
                self._put(_EndOfEpoch())
        except BaseException as error:
            self._put(_Failure(error))

    def _put(self, item: Any) -> bool:
        """Put it in when there is room; False if the consumer has gone."""
        while not self.is_closed.is_set():
            try:
                self.batches.put(item, timeout=_LOOK_S)
                return True
            except queue.Full:
                pass
        return False

    def take(self) -> Any:
        """The next item; the caller may be interrupted while there is none."""
        while True:
            try:
                return self.batches.get(timeout=_LOOK_S)
            except queue.Empty:
                if not self.is_alive() and self.batches.empty():
                    return _Failure(RuntimeError("the thread of the data loader has ended"))


class AsyncDataLoaderMixin:
    """Reads ahead: put it left of a loader among the bases of a class.

    A thread runs the loader's ``_iterate()`` and keeps up to
    ``async_loader_queue_size`` batches ready; after an epoch it goes on with the
    next one. An exception in it is raised where the batch was asked for. With a
    size of 0 there is no thread. Other arguments go to the loader.
    """

    def __init__(
        self,
        async_loader_queue_size: int = 64,
        debug_data_loader: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        self.async_loader_queue_size = async_loader_queue_size
        self.debug_data_loader = debug_data_loader
        self._reader: _Reader | None = None
        super().__init__(*args, **kwargs)

    def close_async_loader(self) -> None:
        """End the thread; what it has read ahead is dropped. The next epoch starts a new one."""
        reader, self._reader = self._reader, None
        if reader is None:
            return
        reader.is_closed.set()
        if reader is not threading.current_thread():
            reader.join(_CLOSE_S)
        self._say("closed")

    def __iter__(self) -> Iterator[Any]:
        if self.async_loader_queue_size <= 0:
            yield from super().__iter__()
            return
        if self._reader is None:
            self._reader = _Reader(self, self.async_loader_queue_size)
            self._reader.start()
            self._say("started")
        reader = self._reader
        while True:
            item = reader.take()
            if isinstance(item, _EndOfEpoch):
                self._say("end of an epoch")
                return
            if isinstance(item, _Failure):
                self._reader = None
                raise item.error
            yield self._process_batch(item)

    def _say(self, what: str) -> None:
        if self.debug_data_loader:
            print(f"rueda: data loader: {what}", file=sys.stderr, flush=True)
