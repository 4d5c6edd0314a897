"""Awaitables that the app returns, and the event loop that runs them, once there is one."""

from __future__ import annotations

from contextvars import Context
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Coroutine, Optional, Sequence, Tuple

from banana_worker.process.cleaning import cancel
from banana_worker.process.descriptors import DOWN_FD
from banana_worker.process.listener import Listener
from banana_worker.process.stay_awake import asleep

if TYPE_CHECKING:
    from banana_worker.process.event_loop import EventLoop

# Makes a coroutine that is to run, in this context.
Beginning = Tuple[Callable[[], Coroutine[Any, Any, None]], Context]

# Types whose values are known not to be awaitables, without a look at the value.
_PLAIN = frozenset((dict, list, str, bytes, int, float, bool, tuple, type(None)))


class Tasks:
    """Everything is for the main thread, unless it says that it is for any. An app without coroutines never starts an
    event loop."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._loop: Optional[EventLoop] = None

    def settled(self, output: Any, is_cancelled: Callable[[], bool]) -> Any:
        """The app's output, or the result of awaiting it. @raises the exception of the awaitable"""
        return self.run(output, is_cancelled) if is_awaitable(output) else output

    def run(self, awaitable: Awaitable[Any], is_cancelled: Callable[[], bool]) -> Any:
        """Awaits it; `cancel` cancels it, as does a cancel that came before."""
        return (self._loop or self._started()).run(awaitable, is_cancelled)

    def serve(self, step: Callable[[], bool]) -> None:
        """Runs tasks until `step` returns True. It is called at first, after messages were read, and by `wake`."""
        self._started().wait_until(step, asleep)

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> Any:
        """Returns a task that runs beside others while `serve` or another wait goes on."""
        return self._started().begin(coroutine)

    def call_soon(self, function: Callable[[], None]) -> None:
        """Calls the function when the event loop turns; at once if there is no event loop. For any thread."""
        if self._loop is None:
            function()
        else:
            self._loop.call_soon(function)

    def _started(self) -> EventLoop:
        if self._loop is None:
            from banana_worker.process.event_loop import EventLoop

            # An empty context, because the loop lives longer than the context variables of this call.
            self._loop = Context().run(EventLoop, self._listener, DOWN_FD)
        return self._loop

    def run_together(self, begin: Sequence[Beginning], is_cancelled: Callable[[], bool]) -> None:
        """Runs coroutines to their ends, each in its context; `cancel` cancels each of them. One that is
        cancelled before it has begun never runs. @raises their exceptions"""
        if len(begin) == 1:
            (make, context), *_ = begin
            context.run(self.run, make(), is_cancelled)
        else:
            self.run(_together(begin), is_cancelled)

    def wait_until(self, is_there: Callable[[], bool], is_awake: Callable[[], bool]) -> None:
        """Waits until a message has made `is_there` true; the app's tasks go on meanwhile. It does not sleep while
        `is_awake`."""
        if self._loop is None:
            self._listener.wait_until(is_there, is_awake)
        else:
            self._loop.wait_until(is_there, is_awake)

    @property
    def coroutine(self) -> Any:
        """The coroutine that `run` runs now; None if there is none. For any thread."""
        return None if self._loop is None else self._loop.coroutine

    def wake(self) -> None:
        """Called after messages were read, or when a task of `begin` has ended. For any thread."""
        if self._loop is not None:
            self._loop.wake()

    def cancel(self, task: Any) -> None:
        """Cancels a task of `begin`, once it has begun; with None the awaitable of `run`, if there is one. For any
        thread."""
        if task is not None:
            self.call_soon(lambda: cancel(task))
        elif self._loop is not None:
            self._loop.cancel()


def is_awaitable(output: Any) -> bool:
    return type(output) not in _PLAIN and hasattr(type(output), "__await__")


async def _together(begin: Sequence[Beginning]) -> None:
    """Ends when all of them have ended. A cancel is passed on to each of them, and each ends in its own way."""
    import asyncio

    tasks = [context.run(asyncio.ensure_future, make()) for make, context in begin]
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                cancel(task)
    for task in tasks:
        if not task.cancelled():
            task.result()
