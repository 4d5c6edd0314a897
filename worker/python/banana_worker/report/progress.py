"""Reports how far a job is. The newest report counts: the first is sent at once, the next ones at most four a second, the
last one before the call's ending."""

from __future__ import annotations

import collections
import threading
import time
from typing import Any, Deque, List, Optional, Tuple

from banana_worker.process.channel import Channel
from banana_worker.protocol.tables import MAX_PROGRESS_CHARS

_INTERVAL_S = 0.25


def report_of(fraction: object, text: object) -> Tuple[float, str]:
    """Checks the values of a report. @raises TypeError, ValueError"""
    if isinstance(fraction, bool) or not hasattr(type(fraction), "__float__"):
        raise TypeError("progress() takes a number, not %s" % type(fraction).__name__)
    number = float(fraction)  # type: ignore[arg-type]
    if not 0 <= number <= 1:
        raise ValueError("progress() takes a fraction from 0 to 1, not %r" % (fraction,))
    if not isinstance(text, str):
        raise TypeError("progress() takes a text beside the fraction, not %s" % type(text).__name__)
    return number, text[:MAX_PROGRESS_CHARS]


class Progress:
    """The reports of one call. May be used from any thread: an app may block this one, so a timer sends what waits."""

    def __init__(self, channel: Channel, call_id: int) -> None:
        self._channel = channel
        self._call_id = call_id
        self._lock = threading.Lock()
        self._sent_at = float("-inf")
        # The newest report that was not sent, or none.
        self._newest: Deque[Tuple[float, str]] = collections.deque(maxlen=1)
        self._timer: Optional[threading.Timer] = None
        self._has_ended = False

    def report(self, newest: Tuple[float, str]) -> None:
        with self._lock:
            self._newest.append(newest)
            wait_s = self._sent_at + _INTERVAL_S - time.monotonic()
            if wait_s > 0 and self._timer is None and not self._has_ended:
                self._timer = threading.Timer(wait_s, self._send)
                self._timer.daemon = True
                self._timer.start()
        if wait_s <= 0:
            self._send()

    def end(self) -> None:
        """Sends what waits, and nothing after that: the call's ending must be its last message."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
        self._channel.send_on_turn(self._take_last)

    def _send(self) -> None:
        with self._lock:
            self._timer = None
            self._sent_at = time.monotonic()
        self._channel.send_on_turn(self._take)

    def _take(self) -> List[List[Any]]:
        """Called when its turn has come to be sent: no other turn comes in between."""
        if self._has_ended:
            return []
        try:
            return [["progress", self._call_id, *self._newest.pop()]]
        except IndexError:
            return []

    def _take_last(self) -> List[List[Any]]:
        messages = self._take()
        self._has_ended = True
        return messages
