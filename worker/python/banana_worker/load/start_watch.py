"""Logs the place of a start that runs out of time, before the front ends the worker."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from types import FrameType
from typing import Any, Callable, Optional

from banana_worker.failures.stack_frame import place_in_coroutine, place_on_stack
from banana_worker.process.descriptors import BEGUN_FD
from banana_worker.protocol.tables import BEGUN_NOTE_BYTES

_LAST_WORD_MS = 5000.0


class StartWatch:
    """Watches the thread that makes it. If that holds the GIL in native code, no other thread of Python can look at
    it; then `_NativeStall` leaves its place for the front."""

    def __init__(
        self, ready_within_ms: Optional[float], coroutine: Callable[[], Any], log: Callable[[str], None]
    ) -> None:
        """`log` is called once, from a thread of its own, 5 s before the time is over, or after half of it.
        `coroutine` returns the one that the watched thread runs, or None."""
        self._log = log
        self._coroutine = coroutine
        self._watched = threading.get_ident()
        self._over = threading.Event()
        self._native = _NativeStall()
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


class _NativeStall:
    """Writes the place of a start that hangs in native code behind the note on fd 5, where the front finds it.

    Such code may hold the GIL, and then no thread of Python runs. The watchdog of `faulthandler` is a thread that needs
    no GIL. It reads the stacks of running threads, so it is stopped once the start is over, or another thread has logged
    the place. Without it, the only error of a start that hangs in the import of a native library would be a timeout
    without a place. A process has only one watchdog: if the app starts it, it is the app's from then on.
    """

    def __init__(self) -> None:
        self._at = 0.0
        self._is_armed = False
        self._is_over = True
        self._start_watchdog = faulthandler.dump_traceback_later

    def watch(self, after_s: float) -> None:
        """Writes the places of all threads in `after_s` seconds, unless `end` is called before."""
        self._at = time.monotonic() + after_s
        self._is_over = False
        os.lseek(BEGUN_FD, BEGUN_NOTE_BYTES, os.SEEK_SET)
        faulthandler.dump_traceback_later = self._hand_over
        # A forked child has no such thread, and stopping it there would wait for ever.
        os.register_at_fork(before=self._stop, after_in_parent=self._start, after_in_child=self._forget)
        self._start()

    def end(self) -> None:
        """Stops the watchdog."""
        self._is_over = True
        if faulthandler.dump_traceback_later == self._hand_over:
            faulthandler.dump_traceback_later = self._start_watchdog
        self._stop()

    def _start(self) -> None:
        if not self._is_over:
            self._is_armed = True
            self._start_watchdog(max(0.001, self._at - time.monotonic()), file=BEGUN_FD)

    def _stop(self) -> None:
        if self._is_armed:
            self._is_armed = False
            faulthandler.cancel_dump_traceback_later()

    def _forget(self) -> None:
        """A watchdog in a child would never be stopped, so none is started there, even when the child forks."""
        self._is_over = True
        self._is_armed = False

    def _hand_over(self, *args: Any, **named: Any) -> Any:
        """Replaces `faulthandler.dump_traceback_later` while the app starts."""
        self._is_over = True
        self._is_armed = False
        return self._start_watchdog(*args, **named)
