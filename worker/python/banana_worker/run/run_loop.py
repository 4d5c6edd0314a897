"""Runs one call, or one batch, at a time, in order.

1. `accept`, on the thread that reads messages, puts calls with whole bodies in the inbox.
2. `run`, on the main thread, takes the next ones once the answers of the last are in the kernel.
3. `call_runner.py` or `batch_runner.py` runs them to their end.
"""

from __future__ import annotations

import collections
import contextvars
import threading
import time
from typing import Deque, Dict, List, Optional

from banana_worker.failures.retirement import Retirement
from banana_worker.process.listener import Listener
from banana_worker.process.stay_awake import StayAwake
from banana_worker.protocol.errors import ProtocolError, ServeError
from banana_worker.run.arriving_calls import WaitingCall
from banana_worker.run.batch_runner import BatchRunner
from banana_worker.run.call_runner import CallRunner
from banana_worker.run.runner import Runner, RunnerOptions
from banana_worker.run.running_call import RunningCall, send_error

# After calls that took this long, pending cancels are read before the next call begins.
_YIELD_AFTER_S = 0.001


class RunLoop:
    def __init__(self, options: RunnerOptions, listener: Listener, idleness: StayAwake) -> None:
        self._options = options
        self._listener = listener
        self._idleness = idleness
        self._single = CallRunner(options)
        self._batches = BatchRunner(options)
        routes = options.app.description.routes
        self._max_batch: Dict[str, int] = {route.path: route.max_batch for route in routes}
        # Calls of one list begin together.
        self._inbox: Deque[List[WaitingCall]] = collections.deque()
        self._request_id = ""
        # Held while a call moves from the inbox to its runner, so that a cancel finds it in one of them.
        self._lock = threading.Lock()
        self._retirement = Retirement()
        self._stopped = False

    @property
    def running_request_id(self) -> str:
        """Request id of the running call, the first of a batch; empty between calls."""
        return self._request_id

    def accept(self, batch: List[WaitingCall]) -> None:
        """Takes calls whose bodies are whole: one, or a batch. @raises ProtocolError if their route does not take so
        many"""
        if len(batch) > 1:
            self._check_batch(batch)
        self._inbox.append(batch)

    def cancel(self, call_id: int, reason: str) -> None:
        """Cancels a call whose answer is not needed any more: drops it if it has not begun, else informs the app."""
        with self._lock:
            was_waiting = self._drop(call_id)
            if not was_waiting:
                self._single.cancel(call_id, reason)
                self._batches.cancel(call_id, reason)
        if was_waiting:
            self.send_cancelled(call_id)

    def send_cancelled(self, call_id: int) -> None:
        """Sends the ending of a call that never began."""
        send_error(self._options.host.channel, call_id, ServeError("SERVE_CANCELLED"), 0.0)

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
        """Begins no further call, and asks the running one to end. For the thread that reads messages."""
        with self._lock:
            self._stopped = True
            self._inbox.clear()
        self._single.abort(reason)
        self._batches.abort(reason)

    def run(self) -> Optional[ServeError]:
        """Runs calls until `stop`, then returns None; or until the app's process is in doubt, and returns the
        reason. @raises AppExit"""
        tasks, idleness = self._options.tasks, self._idleness
        while True:
            batch = self._next()
            if batch is None:
                if self._stopped:
                    return None
                idleness.on_idle()
                tasks.wait_until(self._has_news, idleness.is_awake)
                continue
            began_at = time.perf_counter()
            idleness.on_begin(began_at, len(batch))
            # The app's exception gets no name here: its traceback holds local variables of the app, perhaps much memory
            # of a GPU. Each call runs in a copy of the context: it sees the variables that `init` has set, and keeps
            # its own.
            doubt = self._retirement.after_call(contextvars.copy_context().run(self._runner_of(batch).run))
            self._request_id = ""
            if doubt is not None:
                return doubt
            if time.perf_counter() - began_at > _YIELD_AFTER_S:
                self._listener.read_if_any()

    def _has_news(self) -> bool:
        return self._stopped or len(self._inbox) > 0

    def _next(self) -> Optional[List[WaitingCall]]:
        """The next calls, which their runner has taken."""
        with self._lock:
            if self._stopped or not self._inbox:
                return None
            batch = self._inbox.popleft()
            self._runner_of(batch).take(batch)
            self._request_id = batch[0].call.request_id
            return batch

    def _runner_of(self, batch: List[WaitingCall]) -> Runner:
        return self._single if len(batch) == 1 else self._batches

    def _find(self, call_id: int) -> Optional[RunningCall]:
        return self._single.find(call_id) or self._batches.find(call_id)

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

    def _check_batch(self, batch: List[WaitingCall]) -> None:
        route = batch[0].call.route
        most = self._max_batch.get(route, 1)
        if len(batch) > most or any(waiting.call.route != route for waiting in batch):
            raise ProtocolError("a batch of %d calls; the route %s takes at most %d" % (len(batch), route, most))
