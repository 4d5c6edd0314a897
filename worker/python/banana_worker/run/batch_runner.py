"""Runs the calls of a batch, from their common begin to the end of the last.

1. A note with the last id marks the begin of all of them.
2. Each body is read; one that is malformed fails its own call, and the others run.
3. The app's batch function gets all inputs and returns one entry for each: `running_call.py` answers each by itself.
4. If it raises and the app declared itself `repeatable`, the inputs run again in halves, so that only the guilty one
fails.
5. Streams among the answers take turns, so that a slow client does not hold up the others.

One object runs all batches of a worker, one after the other, on the main thread.
"""

from __future__ import annotations

import contextvars
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, cast

from banana_worker.failures.outlook import loss_of_gpu
from banana_worker.failures.thrown import is_a
from banana_worker.protocol.errors import ServeError
from banana_worker.reply.answer import StreamedAnswer
from banana_worker.reply.response import Response, may_answer_several
from banana_worker.run.arriving_calls import WaitingCall
from banana_worker.run.batch_entries import entries_of, halves_of
from banana_worker.run.runner import AppExit, Runner, RunnerOptions, check_is_worker
from banana_worker.run.running_call import RunningCall, exception_of
from banana_worker.run.tasks import is_cancellation, let_others_go_on


class _Item(NamedTuple):
    """A call whose body could be read."""

    running: RunningCall
    input: Any


class _Stream(NamedTuple):
    """An answer that streams."""

    running: RunningCall
    streamed: StreamedAnswer
    # The stream's own copy: the context variables of its call or batch, without those of other streams.
    context: contextvars.Context


class BatchRunner(Runner):
    def __init__(self, options: RunnerOptions) -> None:
        super().__init__(options)
        # The calls of the batch, by their ids.
        self._calls: Dict[int, RunningCall] = {}
        self._streams: List[_Stream] = []
        self._raised: Optional[BaseException] = None
        self._has_hinted = False

    def take(self, batch: List[WaitingCall]) -> None:
        host = self.options.host
        self._calls = {waiting.call.id: RunningCall(host, waiting) for waiting in batch}

    def run(self) -> Optional[BaseException]:
        """Runs calls of one route to their ends. Returns the app's exception for the last of them, if there was one;
        an exception that shows a spoiled process goes before any other. @raises AppExit"""
        calls = list(self._calls.values())
        self.options.note.begin(calls[-1].call.id)
        self._raised = None
        self.options.prints.begin(calls[0].call.request_id)
        try:
            self._run_items(self._read_inputs(calls))
            self._send_streams()
        finally:
            self._calls = {}
            self.options.prints.end()
        try:
            return self._raised
        finally:
            self._raised = None

    def find(self, call_id: int) -> Optional[RunningCall]:
        running = self._calls.get(call_id)
        return running if running is not None and not running.has_ended else None

    def cancel(self, call_id: int, reason: str) -> None:
        running = self.find(call_id)
        if running is None:
            return
        running.cancel(reason)
        if self._all_left():
            self.options.tasks.cancel()

    def abort(self, reason: str) -> None:
        for running in list(self._calls.values()):
            running.ctx.cancel(reason)

    def _all_left(self) -> bool:
        return all(running.cancelled or running.has_ended for running in list(self._calls.values()))

    def _read_inputs(self, calls: List[RunningCall]) -> List[_Item]:
        app = self.options.app
        items: List[_Item] = []
        for running in calls:
            try:
                items.append(_Item(running, running.read_input(app.wishes(running.call.route))))
            except Exception as thrown:
                running.fail(thrown)
        return items

    def _run_items(self, items: List[_Item]) -> None:
        """Runs the items whose clients still wait, and answers them."""
        waited: List[_Item] = []
        for item in items:  # reads each flag once: the other thread may set it at any time
            if item.running.cancelled:
                item.running.fail(ServeError("SERVE_CANCELLED"))
            else:
                waited.append(item)
        if not waited:
            return
        try:
            returned = self._ask_app(waited)
        except BaseException as thrown:
            check_is_worker(thrown)
            self._on_raised(waited, thrown)
            return
        check_is_worker(None)
        for item in waited:
            item.running.input = None
        self._answer_all(waited, returned)

    def _ask_app(self, items: List[_Item]) -> Any:
        """The output of the batch function. A call that is alone by now runs like any single call."""
        app, tasks = self.options.app, self.options.tasks
        running, value = items[0]
        route = running.call.route
        if len(items) == 1:
            return [tasks.settled(app.handle(route, value, running.ctx), self._all_left)]
        output = app.handle_batch(route, [item.input for item in items], [item.running.ctx for item in items])
        return tasks.settled(output, self._all_left)

    def _on_raised(self, items: List[_Item], thrown: BaseException) -> None:
        """Fails these items, none of which has been answered, or runs them again in halves."""
        if is_cancellation(thrown) and all(item.running.cancelled for item in items):
            thrown = ServeError("SERVE_CANCELLED")
        elif len(items) > 1 and self.options.app.repeatable:
            for half in halves_of(items):
                contextvars.copy_context().run(self._run_items, half)
            return
        elif is_a(thrown, Response) and (len(items) == 1 or may_answer_several(cast(Response, thrown))):
            self._answer_all(items, [thrown] * len(items))
            return
        else:
            if is_a(thrown, Response):
                thrown = TypeError(_ONE_RESPONSE % len(items))
            self._note_outcome(thrown)
            if len(items) > 1:
                self._hint_at_repeatable(len(items))
        for item in items:
            item.running.fail(thrown)

    def _answer_all(self, items: List[_Item], returned: Any) -> None:
        try:
            entries = entries_of(returned, len(items))
        except ServeError as wrong:
            entries = [wrong.with_traceback(None)] * len(items)
        for item, entry in zip(items, entries):
            try:
                streamed = item.running.answer(entry)
            except BaseException as thrown:  # a panic of a library in Rust is not an Exception
                check_is_worker(thrown)
                item.running.fail(thrown)
                self._note_outcome(thrown)
                continue
            if streamed is not None:
                self._streams.append(_Stream(item.running, streamed, contextvars.copy_context()))
            else:
                self._note_outcome(exception_of(entry))

    def _send_streams(self) -> None:
        streams, self._streams = self._streams, []
        thrown: BaseException = ServeError("SERVE_CANCELLED")  # for streams that were cancelled before they began
        try:
            if any(hasattr(stream.streamed.chunks, "__anext__") for stream in streams):
                sending = [(self._send_async(stream.running, stream.streamed), stream.context) for stream in streams]
                self.options.tasks.run_together(sending, self._all_left)
            elif streams:
                self._send_in_turns(streams)
        except AppExit:
            raise
        except BaseException as raised:  # raised by a signal handler of the app while all of them wait
            check_is_worker(raised)
            self._note_outcome(raised)
            thrown = raised
        for stream in streams:
            stream.running.fail(thrown)

    def _send_in_turns(self, streams: List[_Stream]) -> None:
        open_ones = [(running, _steps(running, streamed), context) for running, streamed, context in streams]
        while open_ones:
            senders = [running.stream for running, *_ in open_ones]
            self.options.host.waits.wait(lambda: any(one is not None and one.credit.may_go_on() for one in senders))
            open_ones = [one for one in open_ones if self._step(*one)]

    def _step(self, running: RunningCall, steps: Iterator[None], context: contextvars.Context) -> bool:
        """Sends a chunk if there is credit. Returns whether there is more."""
        assert running.stream is not None
        if not running.stream.credit.may_go_on():
            return True
        try:
            context.run(next, steps)
            return True
        except StopIteration:
            running.end_stream()
        except BaseException as thrown:
            check_is_worker(thrown)
            self._fail_stream(running, thrown)
        return False

    async def _send_async(self, running: RunningCall, streamed: StreamedAnswer) -> None:
        """Never raises, except for the end of the worker."""
        stream = running.open_stream()
        chunks: Any = streamed.chunks
        try:
            if hasattr(chunks, "__anext__"):
                await stream.send_all_async(chunks, streamed.head)
            else:
                for _ in stream.steps(chunks, streamed.head):
                    await let_others_go_on()
                    await self.options.host.waits.wait_async(stream.credit.may_go_on)
            running.end_stream()
        except (AppExit, SystemExit):
            raise
        except BaseException as thrown:
            self._fail_stream(running, thrown)

    def _fail_stream(self, running: RunningCall, thrown: BaseException) -> None:
        if running.cancelled and is_cancellation(thrown):
            thrown = ServeError("SERVE_CANCELLED")
        running.fail(thrown)
        self._note_outcome(thrown)

    def _note_outcome(self, raised: Optional[BaseException]) -> None:
        """`raised`: None if the app did not raise."""
        if self._raised is None or loss_of_gpu(self._raised) is None:
            self._raised = raised

    def _hint_at_repeatable(self, count: int) -> None:
        if self._has_hinted:
            return
        self._has_hinted = True
        self.options.host.surroundings.log.warn(
            "The batch function raised, and all %d calls of its batch fail. If inputs may safely run twice, "
            'set `config = {"repeatable": True}`: then such a batch runs again in halves, and only the call that '
            "makes it raise fails." % count
        )


_ONE_RESPONSE = "a Response was raised for %d calls at once; return it as the entry of its call"


def _steps(running: RunningCall, streamed: StreamedAnswer) -> Iterator[None]:
    chunks: Any = streamed.chunks
    return running.open_stream().steps(chunks, streamed.head)
