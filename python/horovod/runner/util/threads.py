# SPDX-License-Identifier: Apache-2.0
"""Functions in the background, by the names that Horovod's test suites import."""

from __future__ import annotations

import queue
import threading
from typing import Any, Callable


def in_thread(
    target: Callable[..., Any],
    args: tuple = (),
    name: str | None = None,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Start a thread that calls the target; with ``silent`` its exceptions are dropped."""
    if not isinstance(args, tuple):
        raise ValueError(
            f"args must be a tuple, not {type(args)}, for a single argument use (arg,)"
        )

    def call_silently() -> None:
        try:
            target(*args)
        except Exception:
            pass

    thread = threading.Thread(
        target=call_silently if silent else target,
        args=() if silent else args,
        name=name,
        daemon=daemon,
    )
    thread.start()
    return thread


def on_event(
    event: threading.Event,
    func: Callable[..., Any],
    args: tuple = (),
    stop: threading.Event | None = None,
    check_stop_interval_s: float = 1.0,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Start a thread that calls the function once the event is set, unless stopped before."""
    if event is None:
        raise ValueError("Event must not be None")
    if not isinstance(args, tuple):
        raise ValueError(
            f"args must be a tuple, not {type(args)}, for a single argument use (arg,)"
        )
    if stop is None and not daemon:
        raise ValueError("Stop event must be given for non-daemon event thread")

    def wait_and_call() -> None:
        while not event.wait(None if stop is None else check_stop_interval_s):
            if stop is not None and stop.is_set():
                return
        if stop is None or not stop.is_set():
            func(*args)

    return in_thread(wait_and_call, daemon=daemon, silent=silent)


def execute_function_multithreaded(
    fn: Callable[..., Any],
    args_list: list[list],
    block_until_all_done: bool = True,
    max_concurrent_executions: int = 1000,
) -> dict[int, Any] | None:
    """Call the function with each list of arguments, on several threads.

    Returns the results by place in the list, or None at once without
    ``block_until_all_done``.
    """
    waiting: queue.SimpleQueue[tuple[int, list]] = queue.SimpleQueue()
    results: dict[int, Any] = {}
    for item in enumerate(args_list):
        waiting.put(item)

    def work() -> None:
        while True:
            try:
                place, args = waiting.get_nowait()
            except queue.Empty:
                return
            results[place] = fn(*args)

    count = min(max_concurrent_executions, len(args_list))
    threads = [in_thread(work, daemon=not block_until_all_done) for _ in range(count)]
    if not block_until_all_done:
        return None
    for thread in threads:
        thread.join()
    if len(results) != len(args_list):
        raise RuntimeError(f"{len(args_list) - len(results)} calls of {fn.__name__} have failed")
    return results
