"""The bytes that a call may send before the front grants more."""

from __future__ import annotations


class Credit:
    """`grant` and `cancel` are called by whoever reads messages, `spend` by the one sender."""

    __slots__ = ("_granted", "_spent", "cancelled")

    def __init__(self, granted: int) -> None:
        # Two numbers with one writer each: so no lock is needed.
        self._granted = granted
        self._spent = 0
        self.cancelled = False

    def spend(self, size: int) -> None:
        self._spent += size

    def grant(self, size: int) -> None:
        self._granted += size

    def cancel(self) -> None:
        """Lets a waiting sender go on: nobody takes what it sends any more."""
        self.cancelled = True

    def may_go_on(self) -> bool:
        """Something may be sent now, or there is nobody to send it to."""
        return self._spent < self._granted or self.cancelled
