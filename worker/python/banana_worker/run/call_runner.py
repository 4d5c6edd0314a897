"""Runs a single call, from its begin to its end.

1. A note marks its begin, then the app runs: after a death, the front knows exactly which calls may have run.
2. `running_call.py` turns the app's output or exception into messages.
3. When the ending is in the kernel, `run` returns to `run_loop.py`.

One object runs all calls of a worker, one after the other, on the main thread.
"""

from __future__ import annotations

from typing import Any, List, Optional

from banana_worker.reply.answer import StreamedAnswer
from banana_worker.run.arriving_calls import WaitingCall
from banana_worker.run.runner import Runner, check_is_worker, fail_raised
from banana_worker.run.running_call import RunningCall, exception_of


class CallRunner(Runner):
    _current: Optional[RunningCall] = None

    def take(self, batch: List[WaitingCall]) -> None:
        """From here on a cancel finds the one call of this batch."""
        self._current = RunningCall(self.options.host, batch[0])

    def run(self) -> Optional[BaseException]:
        """Runs the call that was taken to its end, and returns the app's exception, if there was one. @raises
        AppExit"""
        running = self._current
        assert running is not None
        self.options.note.begin(running.call.id)
        self.options.prints.begin(running.call.request_id)
        try:
            output = self._handle(running)
            self._deliver(running, output)
        except BaseException as thrown:
            check_is_worker(thrown)
            return self._end_raised(running, thrown)
        finally:
            self._current = None
            self.options.prints.end()
        return exception_of(output)

    def find(self, call_id: int) -> Optional[RunningCall]:
        running = self._current
        return running if running is not None and running.call.id == call_id else None

    def cancel(self, call_id: int, reason: str) -> None:
        running = self.find(call_id)
        if running is not None:
            running.cancel(reason)
            self.options.tasks.cancel()

    def abort(self, reason: str) -> None:
        running = self._current
        if running is not None:
            running.ctx.cancel(reason)

    def _handle(self, running: RunningCall) -> Any:
        app, call, ctx = self.options.app, running.call, running.ctx
        value: Any = None
        if call.format == "websocket":
            running.open_socket()
            value = running.socket
        else:
            value = running.read_input(app.wishes(call.route))
        output = app.handle(call.route, value, ctx)
        output = self.options.tasks.settled(output, lambda: running.cancelled)
        running.input = None
        return output

    def _deliver(self, running: RunningCall, output: Any) -> None:
        check_is_worker(None)
        if running.socket is not None:
            running.end_socket()
            return
        streamed = running.answer(output)
        if streamed is not None:
            self._send_stream(running, streamed)

    def _send_stream(self, running: RunningCall, streamed: StreamedAnswer) -> None:
        stream = running.open_stream()
        chunks: Any = streamed.chunks
        if hasattr(chunks, "__anext__"):
            sending = stream.send_all_async(chunks, streamed.head)
            self.options.tasks.run(sending, lambda: running.cancelled)
        else:
            stream.send_all(chunks, streamed.head)
        check_is_worker(None)
        running.end_stream()

    def _end_raised(self, running: RunningCall, thrown: BaseException) -> Optional[BaseException]:
        """Ends a call whose function has raised: with the Response that it raised, or with an error."""
        if not running.is_answered_by(thrown):
            return fail_raised(running, thrown)
        # An app may raise one Response again and again, which would keep the frames of all these calls.
        thrown.__traceback__ = None
        try:
            self._deliver(running, thrown)
            return None
        except BaseException as wrong:
            check_is_worker(wrong)
            return fail_raised(running, wrong)
