"""The one thread on which a test's app runs: init, then one call after the other, in the order they came."""

from __future__ import annotations

import queue
import sys
import threading
from concurrent.futures import Future
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from banana_worker.failures.failure import failure_of
from banana_worker.formats.read_input import read_input
from banana_worker.formats.reply import ReplyHead
from banana_worker.protocol.errors import ServeError
from banana_worker.protocol.messages import Call, Route
from banana_worker.reply.answer import StreamedAnswer, WholeAnswer, answer_of
from banana_worker.reply.response import Response
from banana_worker.report.app_log import AppLog
from banana_worker.report.app_metrics import OwnMetrics
from banana_worker.run.call_context import CallContext, InitContext, WorkerInfo
from banana_worker.run.loaded_app import LoadedApp
from banana_worker.run.webhook_handover import DEFAULT_TIMEOUT_MS

from ..hooks import post_directly
from ..status import StatusEvent

Answer = Tuple[int, List[Tuple[str, str]], bytes]


class Submitted(NamedTuple):
    call: Call
    body: bytes
    route: Route
    answer: Future[Answer]
    # Set once the function runs, or the call has ended before.
    begun: threading.Event


class AppThread:
    """`note` is called for every event that the status counts, `background_ended` at each end of a background
    function."""

    def __init__(self, app: LoadedApp, note: Callable[..., Any], background_ended: Callable[[bool], None]) -> None:
        """Returns when `init` has. Raises its exception."""
        self._app = app
        # The input of the call that runs; None while it is not read.
        self._input: Any = None
        self._note = note
        self._background_ended = background_ended
        self._queue: queue.Queue[Optional[Submitted]] = queue.Queue()
        self._started: Future[None] = Future()
        self._loop: Any = None
        self._is_closed = False
        self._shared = context_of_test()
        # A test may leave a call that never ends.
        self._thread = threading.Thread(target=self._run, name="potassium test client", daemon=True)
        self._thread.start()
        self._started.result()

    def submit(self, call: Call, body: bytes, route: Route) -> Submitted:
        """Raises ServeError if the thread is closed, RuntimeError if it is that of another process."""
        if self._is_closed:
            raise ServeError("SERVE_SHUTTING_DOWN", "This test client is closed.")
        if not self._thread.is_alive():
            raise RuntimeError("a forked process cannot use the test client of its parent: make one in the child")
        submitted = Submitted(call, body, route, Future(), threading.Event())
        self._queue.put(submitted)
        return submitted

    def close(self) -> None:
        """Runs the calls that were submitted before, and none after."""
        self._is_closed = True
        self._queue.put(None)

    def _run(self) -> None:
        try:
            self._settled(self._app.init(self._shared))
            self._note(StatusEvent.WORKER_STARTED)
        except BaseException as error:
            self._started.set_exception(error)
            return
        self._started.set_result(None)
        for submitted in iter(self._queue.get, None):
            self._answer(submitted)
        self._settled(self._app.shutdown())
        if self._loop is not None:
            self._loop.close()

    def _answer(self, submitted: Submitted) -> None:
        call, route = submitted.call, submitted.route
        self._note(StatusEvent.INFERENCE_START, call.id)
        answer: Optional[Answer] = None
        failure: Optional[BaseException] = None
        self._input = None
        try:
            answer = self._answer_of(submitted)
        except BaseException as error:
            failure = self._shown(error, call)
        submitted.begun.set()
        # The caller may read the status right after its answer.
        self._note(StatusEvent.INFERENCE_END, call.id)
        if answer is not None:
            submitted.answer.set_result(answer)
        else:
            submitted.answer.set_exception(failure)
        if route.kind == "background":
            self._background_ended(True)
        _post_result(route, answer)

    def _answer_of(self, submitted: Submitted) -> Answer:
        call, body, route = submitted[:3]
        ctx = CallContext(call, body, self._shared)
        schemas = self._app.schemas(route.path)
        self._input = read_input(call, body, self._app.wishes(route.path))
        submitted.begun.set()
        if schemas is not None:
            self._input = schemas.accept_input(self._input)
        try:
            output = self._settled(self._app.handle(route.path, self._input, ctx))
        except Response as raised:
            output = raised
        answer = answer_of(output if schemas is None else schemas.accept_output(output), call)
        if isinstance(answer, WholeAnswer):
            return _answer_with(answer.head, bytes(answer.body))
        return self._collected(answer)

    def _collected(self, answer: StreamedAnswer) -> Answer:
        chunks: List[bytes] = []
        try:
            if hasattr(answer.chunks, "__anext__"):
                self._settled(_collect(answer.chunks, chunks))
            else:
                chunks.extend(map(bytes, answer.chunks))  # type: ignore[arg-type]
        except Exception as error:
            if not chunks:
                raise
            # A client of a server would see the connection break.
            raise ConnectionResetError(f"the stream broke after {len(chunks)} chunks: {error}") from error
        return _answer_with(answer.head(), b"".join(chunks))

    def _settled(self, output: Any) -> Any:
        """The output; an awaitable is awaited, in the one event loop of the thread."""
        if getattr(type(output), "__await__", None) is None:
            return output
        import asyncio

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        return self._loop.run_until_complete(_awaited(output))

    def _shown(self, error: BaseException, call: Call) -> BaseException:
        """The error that the caller gets; the full one is printed, as in the server's log."""
        function = self._app.function(call.route)
        shown = error if isinstance(error, ConnectionResetError) else failure_of(error, function, self._input)
        detail = getattr(shown, "detail", "") or str(shown)
        print(f"{call.route} failed: {detail}", file=sys.stderr, flush=True)
        return shown


async def _awaited(output: Any) -> Any:
    return await output


async def _collect(chunks: Any, into: List[bytes]) -> None:
    async for chunk in chunks:
        into.append(bytes(chunk))


def _answer_with(head: ReplyHead, body: bytes) -> Answer:
    parts = head.headers.split("\n") if head.headers else []
    lines = list(zip(parts[::2], parts[1::2]))
    if head.content_type:
        lines.insert(0, ("Content-Type", head.content_type))
    return head.status, lines, body


class StderrChannel:
    def send(self, fields: List[Any], body: bytes = b"") -> None:
        _, level, message, more, request_id = fields
        print(level, request_id, message, *([more] if more else []), file=sys.stderr, flush=True)

    def send_on_turn(self, messages: Callable[[], List[List[Any]]]) -> None:
        messages()


def context_of_test() -> InitContext:
    channel: Any = StderrChannel()
    metrics = OwnMetrics(channel, lambda: metrics.send())
    return InitContext(WorkerInfo(0, None, 1), AppLog(channel), metrics)


def _post_result(route: Route, answer: Optional[Answer]) -> None:
    """Posts the JSON answer of a route that has a webhook for it."""
    if not route.webhook or answer is None:
        return
    status, lines, body = answer
    content_type = next((value for name, value in lines if name == "Content-Type"), "")
    is_told = status < 300 or route.kind == "background"
    if is_told and content_type.startswith("application/json"):
        post_directly(route.webhook, body, DEFAULT_TIMEOUT_MS)
