"""The one event loop of a worker's life, on the main thread; it begins with the first coroutine that an app returns.

Tasks of the app go on whenever the worker waits: for a call, or for what the app has promised. They rest while the app's
plain functions run.
"""

from __future__ import annotations

import contextvars
import warnings
from types import CoroutineType
from typing import Any, Awaitable, Callable, List, Optional

from banana_worker.process.cleaning import cancel
from banana_worker.process.listener import Listener
from banana_worker.process.signal_guard import Guard
from banana_worker.process.stay_awake import asleep
from banana_worker.process.waits import call_in_loop
from banana_worker.standard_modules import import_standard


class EventLoop:
    """All but `coroutine`, `wake` and `cancel` is for the main thread."""

    def __init__(self, listener: Listener, fd: int) -> None:
        asyncio = import_standard("asyncio")
        self._listener = listener
        self._loop = _adopt_loop(asyncio)
        self._loop.add_reader(fd, listener.read_if_any)
        # A handler that raised between two steps of the loop would lose one of them, and so would one in `read_if_any`.
        self._guard = Guard(lambda: call_in_loop(self._loop, self._loop.stop))
        self._is_there: Optional[Callable[[], bool]] = None
        self._is_awake: Callable[[], bool] = asleep
        # The loop has a step to do in each of its turns, so that it does not sleep.
        self._is_turning = False
        self._task: Optional[Any] = None

    def run(self, awaitable: Awaitable[Any], is_cancelled: Callable[[], bool]) -> Any:
        """What the awaitable gives, or raises. `cancel` cancels it, and so does a cancel that came before."""
        left: List[contextvars.Context] = []
        task = self._loop.create_task(_await(awaitable, left))
        self._task = task
        if is_cancelled():
            task.cancel()
        task.add_done_callback(self._stop)
        try:
            while not task.done():
                self._guard.run(self._loop.run_forever)
        except SystemExit:
            raise
        except BaseException:  # a signal handler of the app's has raised between the steps of the task
            self._end(task)
            raise
        finally:
            self._task = None
            for context in left:
                _take_over(context)
        if task.cancelled() and isinstance(awaitable, CoroutineType):
            awaitable.close()  # if it has not begun, Python would complain that nobody awaited it
        try:
            return task.result()
        finally:
            del task  # it holds what it raised, whose traceback holds this frame

    def _end(self, task: Any) -> None:
        """Cancels it, and waits for its end: what it does is of a call that ends now."""
        while not task.done():
            task.cancel()
            try:
                self._guard.run(self._loop.run_forever)
            except SystemExit:
                raise
            except BaseException:
                pass  # the first counts

    @property
    def coroutine(self) -> Any:
        """What `run` runs now, or None."""
        task = self._task
        return None if task is None else task.get_coro()

    def wait_until(self, is_there: Callable[[], bool], is_awake: Callable[[], bool]) -> None:
        """Runs the tasks of the app until a message has made `is_there` true; `wake` looks whether it is. The loop does not
        sleep as long as `is_awake`."""
        self._is_there, self._is_awake = is_there, is_awake
        if not self._is_turning:
            self._turn()
        self._listener.begin_reading_between_tasks()
        try:
            while not is_there():
                self._guard.run(self._loop.run_forever)
        finally:
            self._listener.end_reading_between_tasks()
            self._is_there = None

    def _turn(self) -> None:
        self._is_turning = self._is_there is not None and self._is_awake()
        if self._is_turning:
            self._loop.call_soon(self._turn)

    def wake(self) -> None:
        """For any thread: messages were read. On the main thread the loop itself has read them."""
        if self._is_there is None:
            return
        if self._listener.is_main_thread:
            self._stop_if_there()
        else:
            call_in_loop(self._loop, self._stop_if_there)

    def cancel(self) -> None:
        """For any thread: cancels what `run` runs, if it does."""
        task = self._task
        if task is not None:
            call_in_loop(self._loop, cancel, task)

    def _stop_if_there(self) -> None:
        if self._is_there is not None and self._is_there():
            self._loop.stop()

    def _stop(self, _task: Any) -> None:
        self._loop.stop()


async def _await(awaitable: Awaitable[Any], left: List[contextvars.Context]) -> Any:
    """`left` gets the context of the task, as it is in the end."""
    try:
        return await awaitable
    finally:
        left.append(contextvars.copy_context())


def _take_over(context: contextvars.Context) -> None:
    """
    A task runs in a copy of the context that it was made in. What it has put into context variables is for what comes after
    it, too: the stream that a coroutine of the app's has returned, for one.
    """
    for variable, value in context.items():
        if variable.get(_NOT_SET) is not value:
            variable.set(value)


_NOT_SET: Any = object()


def _adopt_loop(asyncio: Any) -> Any:
    """The loop that the app's module has asked for while it was imported, else a new one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            loop = asyncio.get_event_loop_policy().get_event_loop()
        except RuntimeError:
            loop = None
    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop
