"""Logs the place of a start that runs out of time, before the front ends the worker."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any, Callable, Optional

from banana_worker.failures.stack_frame import place_in_coroutine, place_on_stack
from banana_worker.load.native_stall import NativeStall

_LAST_WORD_MS = 5000.0


class StartWatch:
    """Watches the thread that makes it. If that holds the GIL in native code, no other thread of Python can look at
    it; then `native_stall.py` leaves its place for the front."""

    def __init__(
        self, ready_within_ms: Optional[float], coroutine: Callable[[], Any], log: Callable[[str], None]
    ) -> None:
        """`log` is called once, from a thread of its own, 5 s before the time is over, or after half of it.
        `coroutine` returns the one that the watched thread runs, or None."""
        self._log = log
        self._coroutine = coroutine
        self._watched = threading.get_ident()
        self._over = threading.Event()
        self._native = NativeStall()
        if ready_within_ms is not None:
            left_ms = min(_LAST_WORD_MS, ready_within_ms / 2)
            times = ((ready_within_ms - left_ms) / 1000, left_ms / 1000)
            self._native.watch((ready_within_ms - left_ms / 2) / 1000)
            threading.Thread(target=self._look, args=times, name="banana-serve start watch", daemon=True).start()

    def end(self) -> None:
        """The start is over; nothing is logged from now on."""
        self._native.end()
        self._over.set()

    def _look(self, after_s: float, left_s: float) -> None:
        frame = None if self._over.wait(after_s) else sys._current_frames().get(self._watched)
        if frame is not None:
            self._native.end()
            self._log("not ready yet, with %.1f s left (--init-timeout): it is %s" % (left_s, self._where(frame)))

    def _where(self, frame: FrameType) -> str:
        awaits_at = place_in_coroutine(self._coroutine()) if place_on_stack(frame) is None else None
        return _place_of(frame) if awaits_at is None else "at %s, and awaits something" % awaits_at


def _place_of(innermost: FrameType) -> str:
    code = innermost.f_code
    place, here = place_on_stack(innermost), "%s:%d" % (code.co_filename, innermost.f_lineno)
    if place == here:
        return "at %s" % here
    return "%s, in %s of %s" % ("outside the app" if place is None else "at %s" % place, code.co_name, here)
