# SPDX-License-Identifier: Apache-2.0
"""A time to be done by."""

from __future__ import annotations

import time


class TimeoutException(Exception):
    """The time is over; ``message`` says for what."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Timeout:
    """Begins when it is made. ``{activity}`` in the message is what took too long."""

    def __init__(self, timeout: float, message: str) -> None:
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._message = message

    def remaining(self) -> float:
        """Seconds, at least 0."""
        return max(0.0, self._deadline - time.monotonic())

    def timed_out(self) -> bool:
        return time.monotonic() > self._deadline

    def check_time_out_for(self, activity: str) -> None:
        """Raise :class:`TimeoutException` if the time is over."""
        if self.timed_out():
            words = self._message.format(activity=activity).rstrip().rstrip(".")
            raise TimeoutException(f"{words}. Timeout after {self._timeout} seconds.")
