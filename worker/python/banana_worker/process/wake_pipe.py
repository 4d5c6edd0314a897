"""A pipe with which another thread wakes the thread that waits for frames."""

from __future__ import annotations

import os
import select


class WakePipe:
    """Programs that the app starts do not inherit its descriptors."""

    def __init__(self, fd: int, until_end: bool = False) -> None:
        """`until_end`: only the end of the stream on `fd` counts as something to read."""
        self._fd = fd
        self._out, self._inlet = os.pipe()
        os.set_blocking(self._inlet, False)
        self._poll = select.poll()
        self._poll.register(fd, 0 if until_end else select.POLLIN)
        self._poll.register(self._out, select.POLLIN)

    def wait(self) -> bool:
        """Waits until there is something to read from the descriptor, and returns True, or until `wake`, and returns
        False. For one thread at a time."""
        ready = [fd for fd, _ in self._poll.poll()]
        if self._out in ready:
            os.read(self._out, 4096)
        return self._fd in ready

    def wake(self) -> None:
        """Ends the current `wait`, or else the next one. For any thread."""
        try:
            os.write(self._inlet, b"\0")
        except BlockingIOError:
            pass  # it is full, which wakes the thread as well
