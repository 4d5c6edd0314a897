"""Keeps the main thread awake between the calls of a single caller: a core that has gone to sleep takes longer to wake than
a short call takes to run (docs/benchmarks.md, "One caller").

Before: the run loop says that a call begins, and that all are answered. After: whoever waits for messages on the main
thread asks `is_awake`, and looks again and again instead of sleeping. It costs one core while a single caller makes over a
thousand calls a second, and nothing at any other time.
"""

from __future__ import annotations

import time
from typing import Callable

# Neither a call nor the wait for the next may take longer: beside them the time to wake is nothing.
_SHORT_S = 0.001

# So many short calls one by one come from a single caller; from many callers a few come like that by chance.
_IN_A_ROW = 32


class StayAwake:
    """For the main thread."""

    def __init__(self, cores: int, now: Callable[[], float] = time.perf_counter) -> None:
        """A worker that has one of its `cores` only cannot spare it, and is never awake."""
        self._may = cores > 1
        self._now = now
        # Calls that began since the last time when all were answered.
        self._calls = 0
        self._began_at = 0.0
        self._in_a_row = 0
        self._idle_since = float("-inf")

    def on_begin(self, at: float, calls: int) -> None:
        """A call begins, or a batch of so many."""
        if self._calls == 0:
            self._began_at = at
        self._calls += calls

    def on_idle(self) -> None:
        """Every call that came has been answered."""
        now = self._now()
        is_alone = self._calls == 1  # with several callers the front is awake, and would want the core
        is_close = self._began_at - self._idle_since < _SHORT_S
        is_short = now - self._began_at < _SHORT_S
        self._in_a_row = self._in_a_row + 1 if is_alone and is_close and is_short else 0
        self._calls = 0
        self._idle_since = now

    def is_awake(self) -> bool:
        """Whether to look again whether a call has come, and not to sleep."""
        return self._may and self._in_a_row >= _IN_A_ROW and self._now() - self._idle_since < _SHORT_S


def asleep() -> bool:
    """For waits that may be long: not awake."""
    return False
