"""Runs the calls of a worker in order, in as many places as the app has: one, or several if its functions wait for
something else meanwhile.

1. On the thread that reads messages, `arriving` puts calls with whole bodies in the inbox: one, or a batch, whose calls begin
together.
2. `run`, on the main thread, begins the next ones in a free place, behind a note that they begin. With one place they end
there, and their answers are in the kernel; with several each is a task of the event loop.
3. `run_calls.py` runs the app, `running_call.py` answers each call.
"""

from __future__ import annotations

import collections
import contextvars
import threading
import time
from typing import Deque, Dict, List, Optional

from banana_worker.failures.outlook import Retirement
from banana_worker.process.begun_note import BegunNote
from banana_worker.process.listener import Listener
from banana_worker.process.stay_awake import StayAwake
from banana_worker.protocol.errors import ProtocolError, ServeError
from banana_worker.run.arriving_calls import ArrivingCalls, WaitingCall
from banana_worker.run.run_calls import CallRun
from banana_worker.run.running_call import CallHost, RunningCall, send_error

# After calls that took this long, pending cancels are read before the next call begins.
_YIELD_AFTER_S = 0.001


class RunLoop:
    def __init__(self, host: CallHost, note: BegunNote, listener: Listener, idleness: StayAwake) -> None:
        self._host = host
        self._note = note
        self._listener = listener
        self._idleness = idleness
        routes = host.app.description.routes if host.concurrency == 1 else []
        self._max_batch: Dict[str, int] = {route.path: route.max_batch for route in routes}
        # Calls whose bodies are not whole.
        self.arriving = ArrivingCalls(self._accept)
        # Calls of one list begin together.
        self._inbox: Deque[List[WaitingCall]] = collections.deque()
        # By the ids of their calls.
        self._running: Dict[int, CallRun] = {}
        # Held while calls move from the inbox to the running ones, so that a cancel finds them among one of them and reaches
        # no later call; and while a call that has not begun is ended, so that no such ending follows `retiring`.
        self._lock = threading.Lock()
        # The context that `init` has left: calls run in copies of it, see the variables that it has set, and keep their own.
        self._context = contextvars.copy_context()
        self._retirement = Retirement()
        # No call begins any more.
        self._retired = False
        self._doubt: Optional[ServeError] = None
        # The reason to end the worker: the exit of the app, or a failure of the worker itself.
        self._fault: Optional[BaseException] = None

    def cancel(self, call_id: int, reason: str) -> None:
        """Cancels a call whose answer is not needed any more: drops it if it has not begun, else informs the app."""
        with self._lock:
            if self.arriving.drop(call_id) or self._drop(call_id):
                if not self._retired:  # otherwise the front has taken it back, and knows its id no more
                    send_error(self._host.channel, call_id, ServeError("SERVE_CANCELLED"), 0.0)
                return
            run = self._running.get(call_id)  # the main thread removes it without the lock
            if run is not None:
                run.cancel(call_id, reason)

    def grant_credit(self, call_id: int, size: int) -> None:
        running = self._find(call_id)
        if running is not None:
            running.grant_credit(size)

    def take_data(self, call_id: int, body: bytes, is_text: bool, is_last: bool) -> None:
        """Takes a part of a message from the client of a WebSocket; it is dropped if the call has ended by now."""
        running = self._find(call_id)
        if running is not None and running.socket is not None:
            running.socket.on_data(body, is_text, is_last)

    def stop(self, reason: str) -> None:
        """Begins no further call, and asks the running ones to end. For the thread that reads messages."""
        with self._lock:
            self._retired = True
            self._inbox.clear()
            running = set(self._running.values())
        for run in running:
            run.abort(reason)

    def run(self) -> Optional[ServeError]:
        """Runs calls until `stop`, then returns None; or until the app's process is in doubt, and returns the
        reason. @raises AppExit"""
        self._context = contextvars.copy_context()
        if self._host.concurrency == 1:
            self._run_in_turn()
        else:
            self._host.tasks.serve(self._begin_all)
        if self._fault is not None:
            raise self._fault
        return self._doubt

    def _run_in_turn(self) -> None:
        tasks, idleness = self._host.tasks, self._idleness
        while not self._retired:
            run = self._take()
            if run is None:
                idleness.on_idle()
                tasks.wait_until(self._has_news, idleness.is_awake)
                continue
            began_at = time.perf_counter()
            idleness.on_begin(began_at, len(run.calls))
            self._context.copy().run(self._run_alone, run)
            if time.perf_counter() - began_at > _YIELD_AFTER_S:
                self._listener.read_if_any()

    def _run_alone(self, run: CallRun) -> None:
        prints = self._host.prints
        self._note.begin(run.calls[-1].call.id)  # those of its batch before it begin too
        prints.begin(run.calls[0].call.request_id)
        try:
            run.begin()
            self._on_ended(run)
        finally:
            prints.end()

    def _begin_all(self) -> bool:
        """Begins the calls that have come. Returns whether the worker has nothing more to do."""
        try:
            while self._inbox:
                run = self._take()
                if run is None:
                    break
                self._begin_beside(run)
        except BaseException as fault:  # in the event loop, it would only be logged
            self._fault = fault
        return self._fault is not None or (self._retired and not self._running)

    def _begin_beside(self, run: CallRun) -> None:
        self._note.begin(run.calls[0].call.id)
        # The task runs in the context in which it is made.
        run.task = self._context.copy().run(self._host.tasks.begin, self._run_beside(run))
        if run.all_left():  # before there was a task to cancel
            self._host.tasks.cancel(run.task)

    async def _run_beside(self, run: CallRun) -> None:
        """Never raises."""
        call = run.calls[0].call
        self._host.prints.enter(call.request_id)
        try:
            rest = run.begin()
            if rest is not None:
                await rest
            self._on_ended(run)
        except BaseException as fault:
            self._fault = fault
        self._note.end(call.id)
        self._host.tasks.wake()

    def _on_ended(self, run: CallRun) -> None:
        for running in run.calls:
            del self._running[running.call.id]
        doubt = self._retirement.after_call(run.raised)
        run.raised = None  # its traceback holds local variables of the app, perhaps much memory of a GPU
        if doubt is None or (self._retired and self._host.concurrency > 1):
            return
        with self._lock:
            self._retired, self._doubt = True, doubt
            self._inbox.clear()
        if self._running:
            # The front must know that what it has sent meanwhile does not begin here: the running calls may take long.
            self._host.channel.send(["retiring", doubt.message])

    def _has_news(self) -> bool:
        return self._retired or len(self._inbox) > 0

    def _take(self) -> Optional[CallRun]:
        """The next calls, if there are some, and a place."""
        host, places = self._host, self._running
        with self._lock:
            if not self._inbox or self._retired or len(places) >= host.concurrency:
                return None
            calls: List[RunningCall] = []
            run = CallRun(host, calls)
            for waiting in self._inbox.popleft():
                calls.append(RunningCall(host, waiting))
                places[waiting.call.id] = run
            return run

    def _find(self, call_id: int) -> Optional[RunningCall]:
        run = self._running.get(call_id)
        return None if run is None else run.find(call_id)

    def _drop(self, call_id: int) -> bool:
        for batch in self._inbox:
            others = [waiting for waiting in batch if waiting.call.id != call_id]
            if len(others) == len(batch):
                continue
            if others:
                batch[:] = others
            else:
                self._inbox.remove(batch)
            return True
        return False

    def _accept(self, batch: List[WaitingCall]) -> None:
        """The other thread may call it right after the ending of a call whose place it gets, which the main thread still
        counts. @raises ProtocolError if that many may not begin together"""
        if len(batch) > 1:
            self._check_batch(batch)
        self._inbox.append(batch)

    def _check_batch(self, batch: List[WaitingCall]) -> None:
        route = batch[0].call.route
        most = self._max_batch.get(route, 1)
        if len(batch) > most or any(waiting.call.route != route for waiting in batch):
            raise ProtocolError("a batch of %d calls; the route %s takes at most %d" % (len(batch), route, most))
