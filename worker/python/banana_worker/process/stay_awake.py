"""Keeps the main thread awake between the calls of a single caller: waking a core that sleeps takes longer than a short
call (docs/benchmarks.md, "One caller").

Before: the run loop reports the begin of a call, and that all calls are answered. After: a wait for messages on the
main thread polls again and again while `is_awake`, and does not sleep. It costs one core while a single caller makes
over a thousand calls a second, and nothing at any other time.
"""

from __future__ import annotations

import time
from typing import Callable

# Longest call, and longest wait for the next call: beside a longer one, the time to wake does not matter.
_SHORT_S = 0.001

# Short calls in a row that show a single caller; with many callers, a few come one by one by chance.
_IN_A_ROW = 32


class StayAwake:
    """For the main thread."""

    def __init__(self, cores: int, now: Callable[[], float] = time.perf_counter) -> None:
        """A worker with only one of its `cores` cannot spare it, and is never awake."""
        self._may = cores > 1
        self._now = now
        # Calls that began since all were last answered.
        self._calls = 0
        self._began_at = 0.0
        self._in_a_row = 0
        self._idle_since = float("-inf")

    def on_begin(self, at: float, calls: int) -> None:
        """Notes the begin of a call, or of a batch of `calls`."""
        if self._calls == 0:
            self._began_at = at
        self._calls += calls

    def on_idle(self) -> None:
        """Notes that every call has been answered."""
        now = self._now()
        is_alone = self._calls == 1  # with several callers the front is awake, and needs the core
        is_close = self._began_at - self._idle_since < _SHORT_S
        is_short = now - self._began_at < _SHORT_S
        self._in_a_row = self._in_a_row + 1 if is_alone and is_close and is_short else 0
        self._calls = 0
        self._idle_since = now

    def is_awake(self) -> bool:
        """Whether to poll again for a call, and not to sleep."""
        return self._may and self._in_a_row >= _IN_A_ROW and self._now() - self._idle_since < _SHORT_S


def asleep() -> bool:
    """For waits that may be long: never awake."""
    return False
