# SPDX-License-Identifier: Apache-2.0
"""Operations in flight, as ``torch.distributed`` knows them.

The thread that calls ``wait()`` waits in the library, which is the fastest way. A work
whose future is asked for in a backward pass, as DDP does for each bucket, is waited for
in the same way when that pass ends: autograd calls us then, before it calls DDP, which
waits for the futures. Other futures are watched by the completer: one thread for all
groups, which hears from the library when an operation has ended. It also looks after
those of a backward pass now and then, should the pass itself wait for one.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Callable

import torch
import torch.distributed as dist

from rueda import _core
from rueda.common import handles

from .job import GroupError, milliseconds

__all__ = ["JoinedWork", "RuedaWork", "sweep"]

_NO_LIMIT = timedelta(0)
_IDLE_MS = 3_600_000
_WATCH_MS = 500
# How often the completer looks after futures of a backward pass, and for how long after
# the last one it goes on.
_LOOK_MS = 50
_LOOK_ON_S = 2.0
# More than the callbacks of one work take.
_STOP_S = 10.0
# The end of a backward pass waits for this long, and leaves the rest to the completer.
_MOST_S = 0.1

# Those that have not ended keep the memory of their tensors here, whatever their owner
# does with them. The oldest come first.
_in_flight: dict[int, RuedaWork] = {}


def sweep() -> None:
    """Let go of the oldest works that have ended and that no thread waits for."""
    while _in_flight:
        try:
            work = next(iter(_in_flight.values()))
        except (StopIteration, RuntimeError):  # another thread was faster
            return
        if not work.is_completed():
            return


_task = getattr(torch._C, "_current_graph_task_id", lambda: -1)


def is_in_backward() -> bool:
    """Does this thread run a backward pass?"""
    return _task() != -1  # type: ignore[no-any-return]


class RuedaWork(dist.Work):  # type: ignore[misc]
    """One operation of a process group, or several that belong together."""

    def __init__(
        self,
        words: str,
        cores: Sequence[int],
        limit: timedelta,
        output: list[Any],
        keep: Any = None,
        finish: Callable[[], list[Any] | None] | None = None,
        source: int = -1,
        senders: Sequence[int] = (),
    ) -> None:
        """``finish`` runs once, when all cores have ended well; it may return the output.

        ``senders`` are ranks of the job, one of which sends what is received here.
        """
        super().__init__()
        self._words = words
        self._cores = list(cores)
        self._limit = limit
        self._output = output
        self._keep = keep
        self._finish = finish
        self._source = source
        self._senders = senders
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._promise: Any = None  # that it has ended
        self._future: Any = None
        self.deadline = 0.0  # the completer's
        self.left = 0  # how many cores it has not heard of
        self._is_due = False  # the end of a backward pass waits for it
        if self._cores:
            _in_flight[id(self)] = self
        else:
            self._end(None)

    # ---- The end ------------------------------------------------------------

    def _end(self, error: BaseException | None) -> None:
        """All cores are gone. Under the lock, or by the only owner."""
        if error is None and self._finish is not None:
            try:
                self._output = self._finish() or self._output
            except Exception as failure:
                error = failure
        self._error = error
        self._cores = []
        self._keep = self._finish = None
        self._ended.set()
        _in_flight.pop(id(self), None)
        if self._future is not None:
            self._promise.set_result(None)

    def _value(self, _: Any) -> list[Any]:
        """What the future gives. C++ learns of a failure only if a callback raises it."""
        if self._error is not None:
            raise self._error
        return self._output

    def _failed(self, error: BaseException) -> BaseException:
        failure = GroupError(f"{self._words}: {error}")
        failure.__cause__ = error
        return failure

    def _drain(self, until: float | None) -> bool:
        """Wait for all cores. Under the lock. False: time is up, and they run on."""
        while self._cores:
            left = -1 if until is None else _milliseconds_to(until)
            try:
                if not self._has_come(self._cores[0], left):
                    return False
            except (RuntimeError, ValueError) as error:
                self._abandon(self._cores[1:])
                self._end(self._failed(error))
                return True
            self._cores.pop(0)
        self._end(None)
        return True

    def _has_come(self, core: int, left_ms: int) -> bool:
        if not self._senders:
            return _core.wait_until(core, left_ms)
        message = _core.wait_message(core, left_ms)
        if message is None:
            return False
        sender, rows = message
        self._source = self._senders.index(sender)
        if rows != 1:
            raise ValueError(f"rank {sender} sent nothing, and this rank expects something")
        return True

    def _abandon(self, cores: Sequence[int]) -> None:
        """These run on, and write to their memory until they end."""
        handles.leave_behind(cores, (self._keep, self._output))

    def _is_late(self, limit: timedelta) -> BaseException:
        return GroupError(
            f"{self._words}: timed out after {limit.total_seconds():g} s; ranks that did not "
            "come, or came with something else, hold it up"
        )

    def expire(self) -> None:
        """The completer has waited for long enough."""
        with self._lock:
            if not self._ended.is_set():
                self._abandon(self._cores)
                self._end(self._is_late(self._limit))

    def hear(self) -> None:
        """The completer has heard of all cores."""
        with self._lock:
            if not self._ended.is_set():
                self._drain(None)

    def finish_with_backward(self) -> bool:
        """Wait for it when this backward pass ends. False: that cannot be."""
        if not self._is_due and is_in_backward():
            try:
                torch.autograd.Variable._execution_engine.queue_callback(self._end_of_backward)
            except RuntimeError:
                return False
            self._is_due = True
        return self._is_due

    def _end_of_backward(self) -> None:
        with self._lock:
            self._is_due = False
            if self._ended.is_set() or self._drain(time.monotonic() + _MOST_S):
                return
            if self._future is not None:
                self._watch()

    def _watch(self) -> None:
        self.deadline = time.monotonic() + self._limit.total_seconds()
        _completer().watch(self, self._cores)

    # ---- What torch calls ---------------------------------------------------

    def wait(self, timeout: timedelta = _NO_LIMIT) -> bool:
        """Wait until it has ended; an exception says how it failed."""
        if not self._ended.is_set():
            limit = timeout if timeout > _NO_LIMIT else self._limit
            until = time.monotonic() + limit.total_seconds()
            if self._future is not None and not self._is_due:
                is_there = self._ended.wait(limit.total_seconds())
            else:
                with self._lock:
                    is_there = self._ended.is_set() or self._drain(until)
            if not is_there:
                raise self._is_late(limit)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        """Has it ended? Never blocks."""
        if self._ended.is_set():
            return True
        if not self._lock.acquire(blocking=False):
            return False  # a thread waits for it
        try:
            if self._ended.is_set():
                return True
            if not all(map(_has_ended, self._cores)):
                return False
            return self._drain(None)
        finally:
            self._lock.release()

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error if self.is_completed() else None

    def result(self) -> list[Any]:
        self.wait()
        return self._output

    def source_rank(self) -> int:
        return self._source

    _source_rank = source_rank

    def get_future(self) -> Any:
        """A future whose value is the list of results."""
        with self._lock:
            if self._future is None:
                self._promise = torch.futures.Future(devices=_gpus_of(self._output))
                self._future = self._promise.then(self._value)
                if self._ended.is_set():
                    self._promise.set_result(None)
                elif self.finish_with_backward():
                    self.deadline = time.monotonic() + self._limit.total_seconds()
                    _completer().look_after(self)
                else:
                    self._watch()
        return self._future


class JoinedWork(RuedaWork):
    """Several works as one, for operations that were started together."""

    def __init__(self, works: Sequence[RuedaWork]) -> None:
        self._parts = list(works)
        super().__init__("operations that were started together", (), _NO_LIMIT, [])

    def wait(self, timeout: timedelta = _NO_LIMIT) -> bool:
        for part in self._parts:
            part.wait(timeout)
        return True

    def is_completed(self) -> bool:
        return all(part.is_completed() for part in self._parts)

    def exception(self) -> BaseException | None:
        return next((found for part in self._parts if (found := part.exception())), None)

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def result(self) -> list[Any]:
        return [one for part in self._parts for one in part.result()]

    def get_future(self) -> Any:
        futures = [part.get_future() for part in self._parts]
        return torch.futures.collect_all(futures).then(
            lambda done: [one for future in done.value() for one in future.value()]
        )


def _gpus_of(output: list[Any]) -> list[torch.device]:
    """A future must know where the tensors of its value are."""
    found: dict[torch.device, None] = {}
    for one in output:
        for tensor in one if isinstance(one, (list, tuple)) else (one,):
            if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
                found[tensor.device] = None
    return list(found)


def _milliseconds_to(until: float) -> int:
    left = until - time.monotonic()
    return milliseconds(timedelta(seconds=left)) if left > 0 else 0


def _has_ended(core: int) -> bool:
    try:
        return _core.poll(core)
    except (RuntimeError, ValueError):
        return True  # with its context


def _forget_late(core: int) -> None:
    """A work was given up before its operation ended, which it has now."""
    try:
        _core.wait(core)
    except (RuntimeError, ValueError):
        pass  # how it ended matters to no thread


# ---- The completer ----------------------------------------------------------


class _Completer:
    """Completes the works whose futures are asked for, on a thread of its own."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._ends = _core.ends()
        self._watched: dict[int, RuedaWork] = {}
        self._gone: list[int] = []
        self._looked_after: dict[int, RuedaWork] = {}
        self._looks_until = 0.0
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="rueda-c10d", daemon=True)
        self._thread.start()
        atexit.register(self._stop)

    def _stop(self) -> None:
        """Python ends threads that want to run while it exits. In the middle of a function of
        torch that aborts the process, so this one ends before.
        """
        if self.process == os.getpid():
            self._is_over = True
            _core.ring_ends(self._ends)
            self._thread.join(_STOP_S)

    def watch(self, work: RuedaWork, cores: Sequence[int]) -> None:
        work.left = len(cores)
        is_first = not self._watched
        for core in cores:
            self._watched[core] = work
        for core in cores:
            try:
                _core.tell_end(self._ends, core)
            except (RuntimeError, ValueError):
                self._gone.append(core)  # with its context
        if is_first or self._gone:
            _core.ring_ends(self._ends)  # so that it looks at deadlines, too

    def look_after(self, work: RuedaWork) -> None:
        """Complete it, should it end long before its backward pass."""
        now = time.monotonic()
        was_looking = now < self._looks_until
        self._looks_until = now + _LOOK_ON_S
        self._looked_after[id(work)] = work
        if not was_looking:
            _core.ring_ends(self._ends)

    def _look(self) -> None:
        for key, work in list(self._looked_after.items()):
            if work.deadline < time.monotonic():
                work.expire()
            if work.is_completed():
                self._looked_after.pop(key, None)

    def _patience_ms(self) -> int:
        if self._looked_after or time.monotonic() < self._looks_until:
            return _LOOK_MS
        return _WATCH_MS if self._watched else _IDLE_MS

    def _run(self) -> None:
        next_look = 0.0
        while not self._is_over:
            for core in _core.next_ends(self._ends, self._patience_ms()):
                self._hear(core)
            self._look()
            while self._gone:
                self._hear(self._gone.pop())
            if self._watched and time.monotonic() > next_look:
                self._look_at_deadlines()
                next_look = time.monotonic() + _WATCH_MS / 1000

    def _hear(self, core: int) -> None:
        work = self._watched.pop(core, None)
        if work is None:
            _forget_late(core)
            return
        work.left -= 1
        if work.left == 0:
            work.hear()

    def _look_at_deadlines(self) -> None:
        now = time.monotonic()
        late = {core: work for core, work in self._watched.copy().items() if work.deadline < now}
        for core, work in late.items():
            self._watched.pop(core, None)
            work.expire()


_the_completer: _Completer | None = None
_making = threading.Lock()


def _forget_in_child() -> None:
    """The works, and threads that may hold the lock, are the parent's."""
    global _the_completer, _making
    _the_completer = None
    _making = threading.Lock()
    _in_flight.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


def _completer() -> _Completer:
    global _the_completer
    with _making:
        if _the_completer is None or _the_completer.process != os.getpid():
            _the_completer = _Completer()
        return _the_completer
