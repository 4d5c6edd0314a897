"""Frames on their way into the kernel, each whole and one after the other, without a thread that waits for itself.

A signal handler that raises amid a frame would tear it, and the answers behind it would be lost with the worker."""

from __future__ import annotations

import collections
import os
import threading
from typing import Callable, Deque, Generic, List, Optional, TypeVar, Union

from banana_worker.failures.stack_frame import is_own, places_in

BytesLike = Union[bytes, bytearray, memoryview]


class Outgoing:
    """Frames that leave in one piece."""

    __slots__ = ("parts", "_written")

    def __init__(self, parts: List[BytesLike]) -> None:
        """`parts` together are whole frames."""
        self.parts = parts
        # Number of bytes that each write has taken.
        self._written: List[int] = []

    def write(self, fd: int) -> None:
        """Writes all of it. A signal handler may raise at any step; the next `write` goes on from there. @raises
        OSError"""
        written, parts = self._written, self.parts
        if not written:
            # Python runs no signal handler between the write and the note of the bytes it took: together they are one
            # step.
            if len(parts) == 1:
                written.extend(map(os.write, (fd,), parts))
                if written[0] == len(parts[0]):
                    return
            else:
                written.extend(map(os.writev, (fd,), (parts,)))
        size = sum(map(len, parts))
        while sum(written) < size:  # a signal handler interrupted a write
            written.extend(map(os.writev, (fd,), (self._rest(sum(written)),)))

    def _rest(self, skipped: int) -> List[BytesLike]:
        rest: List[BytesLike] = []
        for part in self.parts:
            if skipped < len(part):
                rest.append(memoryview(part)[skipped:])
            skipped = max(0, skipped - len(part))
        return rest


class OutgoingOnTurn(Outgoing):
    """Frames that are made when their turn has come; there may be none."""

    __slots__ = ("_make", "is_empty")

    def __init__(self, make: Callable[[], List[BytesLike]]) -> None:
        super().__init__([])
        self._make = make
        # Whether its turn has come, and there were none: it may come after the sender goes on.
        self.is_empty = False

    def write(self, fd: int) -> None:
        if not self.parts:
            self.parts = self._make()
        self.is_empty = not self.parts
        if self.parts:
            super().write(fd)


T = TypeVar("T")


class InTurn(Generic[T]):
    """Does the things that threads ask for, one after the other. A thing is done when `ask` returns, with one
    exception: a signal handler or a `__del__` may interrupt its own thread while that is busy; then its thing is
    done after the interrupted one, and `ask` returns before. An exception of the signal handler is raised once
    everything is done."""

    def __init__(self, do: Callable[[T], None]) -> None:
        """`do` is called again for the same thing if a signal handler raised at one of its steps, and must go on
        from there. An exception of its own ends that thing, and is raised at the end as well."""
        self._do = do
        # A thread that holds it already can take it again; it then finds `_is_busy`.
        self._lock = threading.RLock()
        self._is_busy = False
        self._asked: Deque[T] = collections.deque()

    def ask(self, what: T) -> None:
        with self._lock:
            self._asked.append(what)
            if not self._is_busy:
                self._do_all()

    def is_interrupted(self) -> bool:
        """Whether this thread is busy here, and the caller is code that interrupted it."""
        if not self._lock.acquire(False):
            return False
        try:
            return self._is_busy
        finally:
            self._lock.release()

    def _do_all(self) -> None:
        raised: Optional[BaseException] = None
        while self._asked or self._is_busy:  # `_is_busy`: something may have been asked for just before the flag fell
            try:
                self._is_busy = True
                while self._asked:
                    self._do(self._asked[0])
                    self._asked.popleft()
                self._is_busy = False
            except BaseException as thrown:
                raised = thrown
                try:
                    is_own = _is_own_failure(thrown)
                except RecursionError:  # the app has left no stack space to look with
                    is_own = True
                if is_own:
                    del self._asked[0]  # no function call, which may not fit on the stack either
        if raised is not None:
            raise raised


def _is_own_failure(thrown: BaseException) -> bool:
    """Whether no code of the app has raised it. Python's own handler of SIGINT leaves no trace."""
    return not isinstance(thrown, KeyboardInterrupt) and all(is_own(place.file) for place in places_in(thrown))
