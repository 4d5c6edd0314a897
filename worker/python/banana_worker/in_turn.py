"""One thing at a time, and no thread that waits for itself."""

from __future__ import annotations

import collections
import threading
from typing import Callable, Deque, Generic, TypeVar

T = TypeVar("T")


class InTurn(Generic[T]):
    """Does what threads ask for, one after the other. It is done when `ask` returns, with one exception: a signal handler
    or a `__del__` that comes in while its own thread is at it gets it done after that, since the other would never end."""

    def __init__(self, do: Callable[[T], None]) -> None:
        self._do = do
        # Held again by a thread that has it already, which then finds `_is_busy`.
        self._lock = threading.RLock()
        self._is_busy = False
        self._asked: Deque[T] = collections.deque()

    def ask(self, what: T) -> None:
        with self._lock:
            self._asked.append(what)
            if self._is_busy:
                return
            while self._asked:  # also what was asked for just before the flag fell
                self._do_asked()

    def _do_asked(self) -> None:
        self._is_busy = True
        try:
            while self._asked:
                self._do(self._asked.popleft())
        finally:
            self._is_busy = False
