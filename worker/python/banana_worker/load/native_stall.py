"""Writes the place of a start that hangs in native code behind the note on fd 5, where the front finds it.

Such code may hold the GIL, and then no thread of Python runs. The watchdog of `faulthandler` is a thread that needs
no GIL. It reads the stacks of running threads, so it is stopped once the start is over, or another thread has logged
the place. Without it, the only error of a start that hangs in the import of a native library would be a timeout
without a place.
"""

from __future__ import annotations

import faulthandler
import os
import time
from typing import Any

from banana_worker.process.begun_note import NOTE_BYTES
from banana_worker.process.descriptors import BEGUN_FD


class NativeStall:
    """A process has only one watchdog: if the app starts it, it is the app's from then on."""

    def __init__(self) -> None:
        self._at = 0.0
        self._is_armed = False
        self._is_over = True
        self._start_watchdog = faulthandler.dump_traceback_later

    def watch(self, after_s: float) -> None:
        """Writes the places of all threads in `after_s` seconds, unless `end` is called before."""
        self._at = time.monotonic() + after_s
        self._is_over = False
        os.lseek(BEGUN_FD, NOTE_BYTES, os.SEEK_SET)
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
