"""Waits for a condition that a message or another thread makes true: credit, data of a client, the end of a webhook, a
`close`.

On the main thread, the waiting code reads the messages itself. On any other thread, and in the event loop, it is
woken by `ring`, which is called after each read. A thread that makes such a condition true calls `ring` too.
"""

from __future__ import annotations

import collections
import threading
from typing import Any, Callable, Deque, TYPE_CHECKING

from banana_worker.process import descriptors
from banana_worker.process.listener import Listener

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future


class Waits:
    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._changed = threading.Condition()
        # Number of threads that wait; each counts itself before it checks.
        self._threads = 0
        # Never replaced by another deque: a waiting thread may just have read the attribute.
        self._futures: Deque[Future[None]] = collections.deque()

    def wait(self, is_there: Callable[[], bool]) -> None:
        """Waits until `is_there`, which must not raise. @raises RuntimeError in a forked child"""
        if is_there():
            return
        _check_is_worker()
        if self._listener.is_main_thread:
            self._listener.wait_until_woken(is_there)
            return
        with self._changed:
            self._threads += 1
            self._changed.wait_for(is_there)
            self._threads -= 1

    async def wait_async(self, is_there: Callable[[], bool]) -> None:
        """`wait` that lets the event loop go on."""
        import asyncio

        loop = asyncio.get_running_loop()
        while not is_there():
            _check_is_worker()
            future: Future[None] = loop.create_future()
            self._futures.append(future)
            if is_there():  # it came before the future was on the list
                self.ring()
            await future

    def ring(self) -> None:
        """Wakes all waits, which check their conditions again."""
        self._listener.wake_main()
        if self._threads > 0:
            with self._changed:
                self._changed.notify_all()
        for _ in range(len(self._futures)):
            try:
                future = self._futures.popleft()
            except IndexError:
                return  # another thread rings, too
            call_in_loop(future.get_loop(), _resolve, future)


def call_in_loop(loop: AbstractEventLoop, function: Callable[..., Any], *args: Any) -> None:
    """Calls the function soon on the thread of the loop; never, if the app has closed the loop. For any thread."""
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        if not loop.is_closed():
            raise


def _check_is_worker() -> None:
    """@raises RuntimeError in a forked child, which receives no messages"""
    if descriptors.in_fork():
        raise RuntimeError("a process that the app has forked cannot wait for its caller: only the worker itself can")


def _resolve(future: Future[None]) -> None:
    if not future.done():  # the waiting task may have been cancelled
        future.set_result(None)


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
