"""Runs the app for calls that have begun together, one or a batch, and answers them.

1. Each body is read; one that is malformed fails its own call, and the others run. A body may have several inputs
(`inputs_of_call.py`).
2. The app's function gets the input; its batch function gets all inputs, and returns one entry for each.
3. If the batch function raises and the app declared itself `repeatable`, the inputs run again in halves, so that only the
guilty one fails.
4. Streams among the answers take turns, so that a slow client does not hold up the others.

In a worker of one place for calls, all of it happens on the main thread before `begin` returns. With several places, each
call is a task of the event loop, which has the rest to do.
"""

from __future__ import annotations

import contextvars
import functools
from typing import Any, Coroutine, Iterator, List, Optional, Tuple, Union, cast

from banana_worker.failures.outlook import loss_of_gpu
from banana_worker.failures.thrown import class_name, is_a
from banana_worker.formats import Inputs
from banana_worker.process.ending import AppExit, check_is_worker
from banana_worker.process.event_loop import is_awaitable
from banana_worker.process.hint_once import hint_once
from banana_worker.protocol.errors import ServeError
from banana_worker.reply.response import Response, may_answer_several
from banana_worker.run.batch_entries import entries_of, halves_of
from banana_worker.run.call_socket import ClosedSocket
from banana_worker.run.inputs_of_call import Part, parts_of
from banana_worker.run.running_call import CallHost, RunningCall
from banana_worker.run.stream_sender import StreamSender

# The part of a run that waits for something.
Rest = Coroutine[Any, Any, None]

# A call, or one of several inputs of one: the app gets it as a call.
AppCall = Union[RunningCall, Part]

# A call, its stream, and the stream's own copy of the call's context: without the context variables of other streams.
_Stream = Tuple[RunningCall, StreamSender, contextvars.Context]


class CallRun:
    """Calls that begin together, until the last of them has ended."""

    __slots__ = ("calls", "raised", "task", "_host", "_most", "_streams")

    def __init__(self, host: CallHost, calls: List[RunningCall]) -> None:
        """`calls`: one, or those of a batch, in their order; a worker of several places has no batches."""
        self.calls = calls
        # The app's exception for the last call, if there was one; an exception that shows a spoiled process goes before any
        # other.
        self.raised: Optional[BaseException] = None
        # The task that it runs in beside others.
        self.task: Any = None
        self._host = host
        # The most inputs that the app takes together; 0: no call has several.
        self._most = 0
        # Streams that have not begun to be sent.
        self._streams: List[_Stream] = []

    def find(self, call_id: int) -> Optional[RunningCall]:
        for running in self.calls:
            if running.call.id == call_id and not running.has_ended:
                return running
        return None

    def cancel(self, call_id: int, reason: str) -> None:
        """Cancels a call whose answer is not needed any more. For the thread that reads messages."""
        running = self.find(call_id)
        if running is not None:
            running.cancel(reason)
            if self.all_left():
                self._host.tasks.cancel(self.task)

    def abort(self, reason: str) -> None:
        """Asks the app to end all of them. For the thread that reads messages."""
        for running in self.calls:
            running.ctx.cancel(reason)

    def all_left(self) -> bool:
        """Whether no client waits any more."""
        for running in self.calls:
            if not (running.cancelled or running.has_ended):
                return False
        return True

    def begin(self) -> Optional[Rest]:
        """Runs the app for calls of one route. Returns the rest of the run, if the event loop has to wait for something
        beside other calls; None once all have ended. @raises AppExit, as the rest does"""
        readable = self._readable()
        settling = self._run_app(readable) if self._most == 0 else self._run_in_groups(readable)
        if self._host.concurrency > 1:
            return self._finish(settling) if settling is not None or self._streams else None
        while self._streams:
            self._send_streams()
        return None

    async def _finish(self, settling: Optional[Rest]) -> None:
        if settling is not None:
            await settling
        while self._streams:
            running, stream, _ = self._streams.pop()
            await self._send_beside(running, stream)

    def _readable(self) -> List[AppCall]:
        """The calls whose input could be read, and whose clients still wait. The others end."""
        app = self._host.app
        readable: List[AppCall] = []
        in_parts: List[List[Part]] = []
        for running in self.calls:
            try:
                running.read_input(app.wishes(running.call.route))
                if running.cancelled:
                    raise ServeError("SERVE_CANCELLED")
                if isinstance(running.input, Inputs):
                    in_parts.append(parts_of(running, running.input))
                    self._most = max(self._most, len(self.calls), running.input.most)
                    running.input = None
                else:
                    readable.append(running)
            except BaseException as thrown:
                check_is_worker(thrown)
                self._end_raised(running, thrown)
        for parts in sorted(in_parts, key=len):  # no call waits for one of thousands
            readable += parts
        return readable

    def _run_in_groups(self, calls: List[AppCall]) -> Optional[Rest]:
        """Runs up to `_most` at a time together, if the app takes batches, else one after the other."""
        if self._host.concurrency > 1:
            return self._run_each(calls)
        routes = self._host.app.description.routes
        takes_batches = any(route.max_batch > 1 for route in routes if route.path == self.calls[0].call.route)
        size = self._most if takes_batches else 1
        for begun in range(0, len(calls), size):
            contextvars.copy_context().run(self._run_group, calls[begun : begun + size])
        return None

    async def _run_each(self, calls: List[AppCall]) -> None:
        for running in calls:
            rest = self._run_group([running])
            if rest is not None:
                await rest

    def _run_app(self, calls: List[AppCall]) -> Optional[Rest]:
        """Runs and answers them. Returns the part of it that awaits the app beside other calls."""
        if not calls:
            return None
        try:
            output = self._ask_app(calls)
            if is_awaitable(output):
                if self._host.concurrency > 1:
                    return self._settle(calls, output)
                output = self._host.tasks.run(output, self.all_left)
        except BaseException as thrown:
            self._on_raised(calls, thrown)
        else:
            self._answer_all(calls, output)
        return None

    def _ask_app(self, calls: List[AppCall]) -> Any:
        """The output of the app's function. A call of a batch that is alone by now runs like any single call."""
        app, running = self._host.app, calls[0]
        route = running.call.route
        if len(calls) == 1:
            return app.handle(route, running.input if running.socket is None else running.socket, running.ctx)
        return app.handle_batch(route, [running.input for running in calls], [running.ctx for running in calls])

    async def _settle(self, calls: List[AppCall], output: Any) -> None:
        try:
            output = await output
        except BaseException as thrown:
            self._on_raised(calls, thrown)
        else:
            self._answer_all(calls, output)

    def _on_raised(self, calls: List[AppCall], thrown: BaseException) -> None:
        """Ends these calls, none of which has been answered, or runs them again in halves."""
        check_is_worker(thrown)
        count = len(calls)
        if count > 1 and self._host.app.repeatable:
            for half in halves_of(calls):
                contextvars.copy_context().run(self._run_group, half)
            return
        if count > 1 and is_a(thrown, Response) and not may_answer_several(cast(Response, thrown)):
            thrown = TypeError("a Response was raised for %d calls at once; return it as the entry of its call" % count)
        if count > 1 and not is_a(thrown, Response) and not self.all_left():
            hint_once("repeatable", _REPEATABLE_HINT % count)
        for running in calls:
            self._end_raised(running if count == 1 else running.whole, thrown)  # nothing shows which input it is

    def _run_group(self, calls: List[AppCall]) -> Optional[Rest]:
        for running in calls:  # reads each flag once: the other thread may set it at any time
            if running.cancelled:
                running.fail(ServeError("SERVE_CANCELLED"))
        return self._run_app([running for running in calls if not running.has_ended])

    def _answer_all(self, calls: List[AppCall], output: Any) -> None:
        check_is_worker(None)
        if len(calls) == 1:
            self._answer(calls[0], output)
            return
        try:
            entries = entries_of(output, len(calls))
        except ServeError as wrong:
            entries = [wrong.with_traceback(None)] * len(calls)
        for running, entry in zip(calls, entries):
            self._answer(running, entry)

    def _answer(self, running: AppCall, output: Any) -> None:
        running.input = None
        try:
            self._note_answer(running, running.answer(output))
        except BaseException as thrown:  # a panic of a library in Rust is not an Exception
            check_is_worker(thrown)
            self._end_raised(running, thrown)

    def _note_answer(self, running: AppCall, raised: Optional[BaseException]) -> None:
        """`raised`: the exception that the app returned in place of an answer, if it did."""
        if not running.has_ended and running.stream is not None:
            self._streams.append((running.whole, running.stream, contextvars.copy_context()))
        elif self.raised is None or loss_of_gpu(self.raised) is None:
            self.raised = raised

    def _end_raised(self, running: AppCall, thrown: BaseException) -> None:
        """Ends a call whose function, or whose answer, has raised: with the Response that it raised, or with an error."""
        if running.has_ended:
            return  # the ending was the last step that could raise
        if running.is_answered_by(thrown):
            # An app may raise one Response again and again, which would keep the frames of all these calls.
            thrown.__traceback__ = None
            try:
                self._note_answer(running, running.answer(thrown))
                return
            except BaseException as wrong:
                check_is_worker(wrong)
                thrown = wrong
        if running.cancelled and is_cancellation(thrown):
            running.fail(ServeError("SERVE_CANCELLED"))
        else:
            running.fail(thrown)
            self._note_answer(running, thrown)

    def _send_streams(self) -> None:
        streams, self._streams = self._streams, []
        try:
            if any(stream.is_async for _, stream, _ in streams):
                sending = [
                    (functools.partial(self._send_beside, running, stream), context)
                    for running, stream, context in streams
                ]
                self._host.tasks.run_together(sending, self.all_left)
            else:
                self._send_in_turns(streams)
        except AppExit:
            raise
        except BaseException as thrown:  # raised by a signal handler of the app while all of them wait
            check_is_worker(thrown)
            for running, *_ in streams:
                self._end_raised(running, thrown)
        for running, stream, _ in streams:
            if not running.has_ended and running.stream is stream:
                running.fail(ServeError("SERVE_CANCELLED"))  # before it began to be sent

    async def _send_beside(self, running: RunningCall, stream: StreamSender) -> None:
        """Sends a stream while others are sent. Raises only for the end of the worker."""
        try:
            await stream.send_beside()
            check_is_worker(None)
            running.end_stream()
        except (AppExit, SystemExit):
            raise
        except BaseException as thrown:
            check_is_worker(thrown)
            self._end_raised(running, thrown)

    def _send_in_turns(self, streams: List[_Stream]) -> None:
        """Sends a chunk of each that has credit, again and again."""
        turns = [(*one, one[1].steps()) for one in streams]
        try:
            while turns:
                has_sent = False
                for turn in tuple(turns):
                    running, stream, context, steps = turn
                    if stream.credit.may_go_on():
                        has_sent = True
                        if not self._send_step(running, steps, context):
                            turns.remove(turn)
                if not has_sent:
                    self._host.waits.wait(lambda: any(stream.credit.may_go_on() for _, stream, *_ in turns))
        finally:
            for *_, steps in turns:
                try:
                    cast(Any, steps).close()
                except BaseException as wrong:  # what ended them all goes on
                    check_is_worker(wrong)

    def _send_step(self, running: RunningCall, steps: Iterator[None], context: contextvars.Context) -> bool:
        """Sends a chunk. Returns whether there is more."""
        try:
            context.run(next, steps)
            return True
        except StopIteration:
            check_is_worker(None)
            running.end_stream()
        except BaseException as thrown:
            check_is_worker(thrown)
            self._end_raised(running, thrown)
        return False


_REPEATABLE_HINT = (
    "The batch function raised, and all %d calls of its batch fail. If inputs may safely run twice, "
    'set `config = {"repeatable": True}`: then such a batch runs again in halves, and only the call that '
    "makes it raise fails."
)


def is_cancellation(thrown: BaseException) -> bool:
    """Whether it only reports that a task was cancelled, or that a WebSocket's client has left."""
    return class_name(thrown) == "CancelledError" or is_a(thrown, ClosedSocket)
