"""Runs several calls at the same time, each as a task of the event loop, in a context of its own.

1. `accept` puts calls with whole bodies in the inbox.
2. `_step`, on the main thread, begins them in the order in which they came, as soon as there is a place.
3. Each task answers its call. By its context, everything that it prints and reports belongs to the call.

Beside: `run_loop.py` runs one call, or one batch, at a time.
"""

from __future__ import annotations

import collections
import contextvars
import threading
from typing import Any, Deque, Dict, List, Optional

from banana_worker.failures.retirement import Retirement
from banana_worker.process.begun_note import BegunTimes
from banana_worker.protocol.errors import ProtocolError, ServeError
from banana_worker.reply.answer import StreamedAnswer
from banana_worker.run.arriving_calls import WaitingCall
from banana_worker.run.runner import RunnerOptions, check_is_worker, fail_raised
from banana_worker.run.running_call import RunningCall, exception_of, send_error
from banana_worker.run.tasks import let_others_go_on

# The request id of the call whose code runs.
_current: contextvars.ContextVar[str] = contextvars.ContextVar("banana-serve running call", default="")


class ConcurrentLoop:
    def __init__(self, options: RunnerOptions, note: BegunTimes, concurrency: int) -> None:
        """`concurrency`: the most calls that run at the same time."""
        self._options = options
        self._note = note
        self._concurrency = concurrency
        self._inbox: Deque[WaitingCall] = collections.deque()
        self._running: Dict[int, RunningCall] = {}
        self._tasks: Dict[int, Any] = {}
        # Held while a call moves from the inbox to the running ones, so that a cancel finds it among one of them; and while a
        # call that has not begun is ended, so that no such ending follows `retiring`.
        self._lock = threading.Lock()
        # The context that `init` has left: each call runs in a copy of it.
        self._context = contextvars.copy_context()
        self._retirement = Retirement()
        self._stopped = False
        self._doubt: Optional[ServeError] = None
        # The reason to end the worker: the exit of the app, or a failure of the worker itself.
        self._fault: Optional[BaseException] = None

    @property
    def running_request_id(self) -> str:
        """Request id of the call whose code runs; empty outside of calls."""
        return _current.get()

    def accept(self, batch: List[WaitingCall]) -> None:
        """Takes a call whose body is whole. The other thread may read it right after the ending of a call whose place it
        gets, which the main thread still counts. @raises ProtocolError for a batch"""
        if len(batch) > 1:
            raise ProtocolError("a batch of %d calls, though calls run at the same time" % len(batch))
        with self._lock:
            if not self._is_retired:
                self._inbox.append(batch[0])

    def cancel(self, call_id: int, reason: str) -> None:
        """Cancels a call whose answer is not needed any more: drops it if it has not begun, else informs the app."""
        with self._lock:
            waiting = next((one for one in self._inbox if one.call.id == call_id), None)
            if waiting is not None:
                self._inbox.remove(waiting)
                self._send_cancelled(call_id)
            running = self._running.get(call_id)
        if running is not None:
            running.cancel(reason)
            task = self._tasks.get(call_id)
            if task is not None:
                self._options.tasks.cancel_task(task)

    def send_cancelled(self, call_id: int) -> None:
        """Sends the ending of a call that never began, unless the front takes such calls back, and knows its id no more."""
        with self._lock:
            if not self._is_retired:
                self._send_cancelled(call_id)

    def _send_cancelled(self, call_id: int) -> None:
        send_error(self._options.host.channel, call_id, ServeError("SERVE_CANCELLED"), 0.0)

    def grant_credit(self, call_id: int, size: int) -> None:
        running = self._running.get(call_id)
        if running is not None:
            running.grant_credit(size)

    def take_data(self, call_id: int, body: bytes, is_text: bool, is_last: bool) -> None:
        """Takes a part of a message from the client of a WebSocket; it is dropped if the call has ended by now."""
        running = self._running.get(call_id)
        if running is not None and running.socket is not None:
            running.socket.on_data(body, is_text, is_last)

    def stop(self, reason: str) -> None:
        """Begins no further call, and asks the running ones to end. For the thread that reads messages."""
        with self._lock:
            self._stopped = True
            self._inbox.clear()
            running = list(self._running.values())
        for one in running:
            one.ctx.cancel(reason)

    def run(self) -> Optional[ServeError]:
        """Runs calls until `stop`, then returns None; or until the app's process is in doubt, and returns the
        reason. @raises AppExit"""
        self._context = contextvars.copy_context()
        self._options.tasks.serve(self._step)
        if self._fault is not None:
            raise self._fault
        return self._doubt

    def _step(self) -> bool:
        """Begins the calls that have come. Returns whether the worker has nothing more to do."""
        try:
            for running in self._take_all():
                self._begin(running)
        except BaseException as fault:  # in the event loop, it would only be logged
            self._fault = fault
        if self._fault is not None:
            return True
        return self._is_retired and not self._running

    @property
    def _is_retired(self) -> bool:
        return self._stopped or self._doubt is not None

    def _take_all(self) -> List[RunningCall]:
        taken: List[RunningCall] = []
        with self._lock:
            while self._inbox and not self._is_retired and len(self._running) < self._concurrency:
                running = RunningCall(self._options.host, self._inbox.popleft())
                self._running[running.call.id] = running
                taken.append(running)
        return taken

    def _begin(self, running: RunningCall) -> None:
        call_id = running.call.id
        self._note.begin(call_id)
        # The task runs in the context in which it is made.
        tasks = self._options.tasks
        task = self._tasks[call_id] = self._context.copy().run(tasks.begin, self._run(running))
        if running.cancelled:  # before there was a task to cancel
            tasks.cancel_task(task)

    async def _run(self, running: RunningCall) -> None:
        """Never raises."""
        request_id = running.call.request_id
        _current.set(request_id)
        self._options.prints.enter(request_id)
        try:
            self._on_ended(running.call.id, await self._answer(running))
        except BaseException as fault:
            self._fault = fault
        self._options.tasks.wake()

    def _on_ended(self, call_id: int, raised: Optional[BaseException]) -> None:
        del self._running[call_id]
        del self._tasks[call_id]
        self._note.end(call_id)
        doubt = self._retirement.after_call(raised)
        if doubt is None or self._is_retired:
            return
        with self._lock:
            self._doubt = doubt
            self._inbox.clear()
        if self._running:
            # The front must know that what it has sent meanwhile does not begin here: the running calls may take long.
            self._options.host.channel.send(["retiring", doubt.message])

    async def _answer(self, running: RunningCall) -> Optional[BaseException]:
        """Runs a call to its ending, and returns the app's exception, if there was one. @raises AppExit"""
        try:
            output = await self._handle(running)
            await self._deliver(running, output)
        except BaseException as thrown:
            check_is_worker(thrown)
            return await self._end_raised(running, thrown)
        return exception_of(output)

    async def _handle(self, running: RunningCall) -> Any:
        app, call = self._options.app, running.call
        value: Any = None
        if call.format == "websocket":
            running.open_socket()
            value = running.socket
        else:
            value = running.read_input(app.wishes(call.route))
        output = app.handle(call.route, value, running.ctx)
        if hasattr(type(output), "__await__"):
            output = await output
        running.input = None
        return output

    async def _deliver(self, running: RunningCall, output: Any) -> None:
        check_is_worker(None)
        if running.socket is not None:
            running.end_socket()
            return
        streamed = running.answer(output)
        if streamed is not None:
            await self._send_stream(running, streamed)

    async def _send_stream(self, running: RunningCall, streamed: StreamedAnswer) -> None:
        stream = running.open_stream()
        chunks: Any = streamed.chunks
        if hasattr(chunks, "__anext__"):
            await stream.send_all_async(chunks, streamed.head)
        else:
            for _ in stream.steps(chunks, streamed.head):
                await let_others_go_on()
                await self._options.host.waits.wait_async(stream.credit.may_go_on)
        check_is_worker(None)
        running.end_stream()

    async def _end_raised(self, running: RunningCall, thrown: BaseException) -> Optional[BaseException]:
        """Ends a call whose function has raised: with the Response that it raised, or with an error."""
        if not running.is_answered_by(thrown):
            return fail_raised(running, thrown)
        # An app may raise one Response again and again, which would keep the frames of all these calls.
        thrown.__traceback__ = None
        try:
            await self._deliver(running, thrown)
            return None
        except BaseException as wrong:
            check_is_worker(wrong)
            return fail_raised(running, wrong)
