"""The worker's only event loop, on the main thread; it is made for the first coroutine that an app returns.

The app's tasks go on whenever the worker waits, for a call or for an awaitable of the app. They pause while the
app's plain functions run.
"""

from __future__ import annotations

import contextvars
import warnings
from types import CoroutineType
from typing import Any, Awaitable, Callable, Coroutine, List, Optional, Sequence, Set, Tuple

from banana_worker.process.listener import Listener
from banana_worker.process.signal_guard import Guard
from banana_worker.process.stay_awake import asleep
from banana_worker.process.waits import call_in_loop
from banana_worker.standard_modules import import_standard


# Makes a coroutine that is to run, in this context.
Beginning = Tuple[Callable[[], Coroutine[Any, Any, None]], contextvars.Context]

# Types whose values are known not to be awaitables, without a look at the value.
_PLAIN = frozenset((dict, list, str, bytes, int, float, bool, tuple, type(None)))


def is_awaitable(output: Any) -> bool:
    return type(output) not in _PLAIN and hasattr(type(output), "__await__")


class EventLoop:
    """Everything is for the main thread, unless it says that it is for any."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        # Made for the first coroutine: an app without coroutines has none.
        self._loop: Any = None
        # A signal handler that raised between two steps of the loop would lose one of them; in `read_if_any` it would
        # lose a message.
        self._guard = Guard(lambda: call_in_loop(self._loop, self._loop.stop))
        self._is_there: Optional[Callable[[], bool]] = None
        self._is_awake: Callable[[], bool] = asleep
        # The loop has a step to do in each of its turns, so that it does not sleep.
        self._is_turning = False
        self._task: Optional[Any] = None

    def _started(self) -> Any:
        if self._loop is None:
            # An empty context, because the loop lives longer than the context variables of this call.
            contextvars.Context().run(self._start)
        return self._loop

    def _start(self) -> None:
        loop = _adopt_loop(import_standard("asyncio"))
        self._listener.read_in(loop)
        self._loop = loop

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()

    def settled(self, output: Any, is_cancelled: Callable[[], bool]) -> Any:
        """The app's output, or the result of awaiting it. @raises the exception of the awaitable"""
        return self.run(output, is_cancelled) if is_awaitable(output) else output

    def run(self, awaitable: Awaitable[Any], is_cancelled: Callable[[], bool]) -> Any:
        """Returns what the awaitable returns, or raises what it raises. `cancel` cancels it, as does a cancel that
        came before."""
        left: List[contextvars.Context] = []
        task = self._started().create_task(_await(awaitable, left))
        self._task = task
        if is_cancelled():
            task.cancel()
        task.add_done_callback(self._stop)
        try:
            while not task.done():
                self._guard.run(self._loop.run_forever)
        except SystemExit:
            raise
        except BaseException:  # a signal handler of the app raised between the steps of the task
            self._end(task)
            raise
        finally:
            self._task = None
            for context in left:
                _take_over(context)
        if task.cancelled() and isinstance(awaitable, CoroutineType):
            awaitable.close()  # otherwise Python warns of a coroutine that was never awaited, if it has not begun
        try:
            return task.result()
        finally:
            del task  # it holds its exception, whose traceback holds this frame

    def _end(self, task: Any) -> None:
        """Cancels the task and waits for its end: its work belongs to a call that ends now."""
        while not task.done():
            task.cancel()
            try:
                self._guard.run(self._loop.run_forever)
            except SystemExit:
                raise
            except BaseException:
                pass  # the first exception counts

    @property
    def coroutine(self) -> Any:
        """The coroutine that `run` runs now, or None."""
        task = self._task
        return None if task is None else task.get_coro()

    def run_together(self, begin: Sequence[Beginning], is_cancelled: Callable[[], bool]) -> None:
        """Runs coroutines to their ends, each in its context; `cancel` cancels each of them. One that is cancelled
        before it has begun never runs. @raises their exceptions"""
        if len(begin) == 1:
            (make, context), *_ = begin
            context.run(self.run, make(), is_cancelled)
        else:
            self.run(_together(begin), is_cancelled)

    def wait_until(self, is_there: Callable[[], bool], is_awake: Callable[[], bool]) -> None:
        """Waits until a message has made `is_there` true, which `wake` checks; the app's tasks go on meanwhile. It does
        not sleep while `is_awake`."""
        if self._loop is None:
            self._listener.wait_until(is_there, is_awake)
        else:
            self._turn_until(is_there, is_awake)

    def serve(self, step: Callable[[], bool]) -> None:
        """Runs tasks until `step` returns True. It is called at first, after messages were read, and by `wake`."""
        self._started()
        self._turn_until(step, asleep)

    def _turn_until(self, is_there: Callable[[], bool], is_awake: Callable[[], bool]) -> None:
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

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> Any:
        """Returns a task that runs beside others while `serve` or another wait goes on."""
        return self._started().create_task(coroutine)

    def call_soon(self, function: Callable[[], None]) -> None:
        """For any thread: calls the function when the loop turns; at once if there is no loop."""
        if self._loop is None:
            function()
        else:
            call_in_loop(self._loop, function)

    def _turn(self) -> None:
        self._is_turning = self._is_there is not None and self._is_awake()
        if self._is_turning:
            self._loop.call_soon(self._turn)

    def wake(self) -> None:
        """For any thread: messages were read, or a task of `begin` has ended. On the main thread, the loop itself has read
        them."""
        if self._is_there is None:
            return
        if self._listener.is_main_thread:
            self._stop_if_there()
        else:
            call_in_loop(self._loop, self._stop_if_there)

    def cancel(self, task: Any) -> None:
        """For any thread: cancels a task of `begin`, once it has begun; with None the task of `run`, if there is one."""
        task = task or self._task
        if task is not None:
            call_in_loop(self._loop, cancel, task)

    def _stop_if_there(self) -> None:
        if self._is_there is not None and self._is_there():
            self._loop.stop()

    def _stop(self, _task: Any) -> None:
        self._loop.stop()


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


async def _await(awaitable: Awaitable[Any], left: List[contextvars.Context]) -> Any:
    """Awaits it, and adds the final context of the task to `left`."""
    try:
        return await awaitable
    finally:
        left.append(contextvars.copy_context())


def _take_over(context: contextvars.Context) -> None:
    """Copies the context variables that a task has set into the current context. A task runs in a copy of the
    context it was made in, but later code needs the variables too: a stream that the app's coroutine has
    returned, for example."""
    for variable, value in context.items():
        if variable.get(_NOT_SET) is not value:
            variable.set(value)


_NOT_SET: Any = object()


def _adopt_loop(asyncio: Any) -> Any:
    """The loop that the app's module made while it was imported, otherwise a new one."""
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


_cleaning: Set[Any] = set()


async def clean_up(closing: Awaitable[None]) -> None:
    """Awaits the cleanup of a task that already knows that its client left. The first cancel meanwhile is ignored,
    because it brings the same news; the second one ends the cleanup."""
    import asyncio

    task = asyncio.current_task()
    _cleaning.add(task)
    try:
        await closing
    finally:
        _cleaning.discard(task)


def cancel(task: Any) -> None:
    """Cancels a task in which a call runs."""
    if task in _cleaning:
        _cleaning.discard(task)
    else:
        task.cancel()
