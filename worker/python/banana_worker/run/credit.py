"""The bytes that a call may send before the front grants more."""

from __future__ import annotations


class Credit:
    """`grant` and `cancel` are for the thread that reads messages, `spend` for the one sender."""

    __slots__ = ("_granted", "_spent", "cancelled")

    def __init__(self, granted: int) -> None:
        # Each number has one writer, so no lock is needed.
        self._granted = granted
        self._spent = 0
        self.cancelled = False

    def spend(self, size: int) -> None:
        self._spent += size

    def grant(self, size: int) -> None:
        self._granted += size

    def cancel(self) -> None:
        """Lets a waiting sender go on, although its client is gone."""
        self.cancelled = True

    def may_go_on(self) -> bool:
        """Whether there is credit, or the client is gone."""
        return self._spent < self._granted or self.cancelled
