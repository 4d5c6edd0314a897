"""The one thread on which a test's app runs: init, then one call after the other, in the order they came. Each runs as in a
worker, up to the frames for the front, which are read here."""

from __future__ import annotations

import contextvars
import queue
import sys
import threading
from concurrent.futures import Future
from types import ModuleType, SimpleNamespace
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from banana_worker.adapters.potassium_calls import PotassiumApp
from banana_worker.failures.failure import failure_of
from banana_worker.process.channel import Channel
from banana_worker.process.ending import AppExit
from banana_worker.process.event_loop import EventLoop
from banana_worker.process.outgoing import Outgoing
from banana_worker.process.waits import Waits
from banana_worker.protocol.codec import decode_head
from banana_worker.protocol.errors import ServeError
from banana_worker.protocol.frame import read_prefix
from banana_worker.protocol.messages import Call, Route, header_lines
from banana_worker.protocol.tables import FRAME_PREFIX_BYTES
from banana_worker.report.app_log import AppLog
from banana_worker.report.app_metrics import OwnMetrics
from banana_worker.report.print_attribution import PrintAttribution
from banana_worker.run.arriving_calls import WaitingCall
from banana_worker.run.call_context import CallContext, InitContext, WorkerInfo
from banana_worker.run.run_calls import CallRun
from banana_worker.run.running_call import CallHost, RunningCall
from banana_worker.run.webhook_handover import DEFAULT_TIMEOUT_MS

from ..hooks import post_directly
from ..status import PotassiumStatus, StatusEvent

Answer = Tuple[int, List[Tuple[str, str]], bytes]


class Submitted(NamedTuple):
    call: Call
    body: bytes
    route: Route
    answer: Future[Answer]
    # Set once the function runs, or the call has ended before.
    begun: threading.Event


class TestedApp(PotassiumApp):
    # That of the call that runs.
    begun: threading.Event

    def handle(self, route: str, input: Any, ctx: CallContext) -> Any:
        self.begun.set()
        return super().handle(route, input, ctx)


class AppThread:
    def __init__(self, app: Any) -> None:
        """Returns when `init` has. Raises its exception."""
        # Only the server reads `config` and other exports beside an app.
        self.app = TestedApp(app, ModuleType(app.name))
        self.status = PotassiumStatus.initial(1)
        self._status_lock = threading.Lock()
        self._background_ended: Callable[[bool], None] = app._write_event_chan
        self._queue: queue.Queue[Optional[Submitted]] = queue.Queue()
        self._started: Future[None] = Future()
        self._is_closed = False
        # A test may leave a call that never ends.
        self._thread = threading.Thread(target=self._run, name="potassium test client", daemon=True)
        self._thread.start()
        self._started.result()

    def note(self, *event: Any) -> bool:
        """Counts an event. Returns whether no call was in progress before."""
        with self._status_lock:
            was_idle = self.status.requests_in_progress == 0
            self.status = self.status.update(event)
        return was_idle

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
        # There is no front whose messages could come meanwhile.
        front: Any = SimpleNamespace(read_in=lambda loop: None)
        limits: Any = SimpleNamespace(stream_window_bytes=sys.maxsize, max_output_bytes=sys.maxsize)
        channel, tasks = TestChannel(), EventLoop(front)
        shared = context_of_test(channel)
        host = CallHost(limits, channel, Waits(front), tasks, PrintAttribution(""), shared, self.app, 1)
        try:
            tasks.settled(self.app.init(shared), lambda: False)
            self.note(StatusEvent.WORKER_STARTED)
        except BaseException as error:
            self._started.set_exception(error)
            return
        self._started.set_result(None)
        for submitted in iter(self._queue.get, None):
            self._answer(submitted, host, channel)
        tasks.settled(self.app.shutdown(), lambda: False)
        tasks.close()

    def _answer(self, submitted: Submitted, host: CallHost, channel: TestChannel) -> None:
        call, route = submitted.call, submitted.route
        self.note(StatusEvent.INFERENCE_START, call.id)
        self.app.begun = submitted.begun
        answer: Optional[Answer] = None
        failure: Optional[BaseException] = None
        channel.messages.clear()
        run = CallRun(host, [RunningCall(host, WaitingCall(call, submitted.body))])
        try:
            contextvars.copy_context().run(run.begin)
            answer = _answer_in(channel.messages, run.raised)
        except BaseException as error:
            failure = self._shown(error, call)
        submitted.begun.set()
        # The caller may read the status right after its answer.
        self.note(StatusEvent.INFERENCE_END, call.id)
        if answer is not None:
            submitted.answer.set_result(answer)
        else:
            submitted.answer.set_exception(failure)
        if route.kind == "background":
            self._background_ended(True)
        _post_result(route, answer)

    def _shown(self, error: BaseException, call: Call) -> BaseException:
        """The error that the caller gets; the full one is printed, as in the server's log."""
        thrown = error.thrown if isinstance(error, AppExit) else error
        shown = (
            thrown if isinstance(thrown, ConnectionResetError) else failure_of(thrown, self.app.function(call.route))
        )
        print(f"{call.route} failed: {getattr(shown, 'detail', '') or shown}", file=sys.stderr, flush=True)
        return shown


class TestChannel(Channel):
    """Prints the lines of the log, and keeps the messages of the call that runs."""

    def __init__(self) -> None:
        super().__init__(-1, lambda fd, error: None)
        # The fields and the body of each.
        self.messages: List[Tuple[List[Any], bytes]] = []

    def write(self, out: Outgoing) -> None:
        data, end = b"".join(out.parts), 0
        while end < len(data):
            head_bytes, body_bytes = read_prefix(data, end)
            head_at = end + FRAME_PREFIX_BYTES
            body_at = head_at + head_bytes
            end = body_at + body_bytes
            self._take(decode_head(data[head_at:body_at]), data[body_at:end])

    def _take(self, fields: List[Any], body: bytes) -> None:
        if fields[0] == "log":
            _, level, message, more, request_id = fields
            print(level, request_id, message, *([more] if more else []), file=sys.stderr, flush=True)
        else:
            self.messages.append((fields, body))

    def send_on_turn(self, messages: Callable[[], List[List[Any]]]) -> None:
        """Drops metrics."""
        messages()


def context_of_test(channel: TestChannel) -> InitContext:
    metrics = OwnMetrics(channel, lambda: metrics.send())
    return InitContext(WorkerInfo(0, None, 1), AppLog(channel), metrics)


def _answer_in(messages: List[Tuple[List[Any], bytes]], raised: Optional[BaseException]) -> Answer:
    """`raised`: the app's exception, if there was one. @raises ServeError, ConnectionResetError"""
    status, content_type, headers = 0, "", ""
    bodies: List[bytes] = []
    for (kind, _, *fields), body in messages:
        if kind == "error" and not bodies:
            code, message, detail, _, *more = fields
            raise ServeError(code, message, detail, *more)
        if kind == "error":
            # A client of a server would see the connection break.
            raise ConnectionResetError(f"the stream broke after {len(bodies)} chunks: {raised}") from raised
        if kind in ("result", "head"):
            status, content_type, headers = fields[:3]
        if body:
            bodies.append(body)
    lines = header_lines(headers)
    if content_type:
        lines.insert(0, ("Content-Type", content_type))
    return status, lines, b"".join(bodies)


def _post_result(route: Route, answer: Optional[Answer]) -> None:
    """Posts the JSON answer of a route that has a webhook for it."""
    if not route.webhook or answer is None:
        return
    status, lines, body = answer
    content_type = next((value for name, value in lines if name == "Content-Type"), "")
    is_told = status < 300 or route.kind == "background"
    if is_told and content_type.startswith("application/json"):
        post_directly(route.webhook, body, DEFAULT_TIMEOUT_MS)
