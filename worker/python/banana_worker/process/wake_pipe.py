"""Lets another thread wake the one that waits for frames."""

from __future__ import annotations

import os
import select


class WakePipe:
    """No program that the app starts gets its descriptors."""

    def __init__(self, fd: int, until_end: bool = False) -> None:
        """`until_end`: only the end of what the descriptor brings counts as something to read."""
        self._fd = fd
        self._out, self._inlet = os.pipe()
        os.set_blocking(self._inlet, False)
        self._poll = select.poll()
        self._poll.register(fd, 0 if until_end else select.POLLIN)
        self._poll.register(self._out, select.POLLIN)

    def wait(self) -> bool:
        """Waits until there is something to read from the descriptor, and returns True; or until `wake`: False. For one
        thread at a time."""
        ready = [fd for fd, _ in self._poll.poll()]
        if self._out in ready:
            os.read(self._out, 4096)
        return self._fd in ready

    def wake(self) -> None:
        """Ends the `wait` that goes on, or else the next one. For any thread."""
        try:
            os.write(self._inlet, b"\0")
        except BlockingIOError:
            pass  # it is full: enough to wake anybody
