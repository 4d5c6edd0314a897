"""What the app promises instead of returning it: awaitables, and the event loop that runs them, once there is one."""

from __future__ import annotations

from contextvars import Context
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Coroutine, Optional, Sequence, Tuple

from banana_worker.failures.thrown import class_name, is_a
from banana_worker.process.cleaning import cancel
from banana_worker.process.listener import Listener
from banana_worker.process.descriptors import DOWN_FD
from banana_worker.run.call_socket import ClosedSocket

if TYPE_CHECKING:
    from banana_worker.process.event_loop import EventLoop

# What runs, and a context of which it runs in a copy.
InContext = Tuple[Coroutine[Any, Any, None], Context]

# Values that are told from awaitables by their type alone, without a look at it.
_PLAIN = frozenset((dict, list, str, bytes, int, float, bool, tuple, type(None)))


class Tasks:
    """All but `coroutine`, `cancel` and `wake` is for the main thread. An app without coroutines never starts an event loop."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._loop: Optional[EventLoop] = None

    def settled(self, output: Any, is_cancelled: Callable[[], bool]) -> Any:
        """What the app returned, or what that gives when it is awaited. @raises what it raises"""
        if type(output) in _PLAIN or not hasattr(type(output), "__await__"):
            return output
        return self.run(output, is_cancelled)

    def run(self, awaitable: Awaitable[Any], is_cancelled: Callable[[], bool]) -> Any:
        """Awaits it; `cancel` cancels it, and so does a cancel that came before."""
        if self._loop is None:
            from banana_worker.process.event_loop import EventLoop

            # What it keeps for its life is not what this call has put into context variables.
            self._loop = Context().run(EventLoop, self._listener, DOWN_FD)
        return self._loop.run(awaitable, is_cancelled)

    def run_together(self, coroutines: Sequence[InContext], is_cancelled: Callable[[], bool]) -> None:
        """
        Runs them to their ends, of which `cancel` tells each of them. One that is cancelled before it has begun never runs.
        @raises what they raise
        """
        try:
            self.run(_together(coroutines), is_cancelled)
        except BaseException as thrown:
            if not is_cancellation(thrown):
                raise
            for coroutine, _ in coroutines:
                coroutine.close()

    def wait_until(self, is_there: Callable[[], bool], is_awake: Callable[[], bool]) -> None:
        """Waits until a message has made `is_there` true; the app's tasks go on meanwhile. It does not sleep as long as
        `is_awake`."""
        if self._loop is None:
            self._listener.wait_until(is_there, is_awake)
        else:
            self._loop.wait_until(is_there, is_awake)

    @property
    def coroutine(self) -> Any:
        """What `run` runs now; None if it runs nothing. For any thread."""
        return None if self._loop is None else self._loop.coroutine

    def wake(self) -> None:
        """Messages were read."""
        if self._loop is not None:
            self._loop.wake()

    def cancel(self) -> None:
        """Cancels what `run` runs, if it does."""
        if self._loop is not None:
            self._loop.cancel()


def is_cancellation(thrown: BaseException) -> bool:
    """Whether it says no more than that a task was cancelled, or that a WebSocket's client has left."""
    return class_name(thrown) == "CancelledError" or is_a(thrown, ClosedSocket)


async def let_others_go_on() -> None:
    """For a coroutine that may have nothing to wait for."""
    import asyncio

    await asyncio.sleep(0)


async def _together(coroutines: Sequence[InContext]) -> None:
    """Ends when all of them have ended. Who cancels it cancels them, and each ends in its own way."""
    import asyncio

    tasks = [context.run(asyncio.ensure_future, coroutine) for coroutine, context in coroutines]
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                cancel(task)
    for task in tasks:
        if not task.cancelled():
            task.result()
