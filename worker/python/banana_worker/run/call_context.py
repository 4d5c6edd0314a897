"""`ctx` of one call. Its costly parts are made when the app first uses them."""

from __future__ import annotations

import re
import threading
from types import MappingProxyType
from typing import Dict, List, NamedTuple, Optional, TYPE_CHECKING

from banana_worker.protocol.messages import Call, header_lines
from banana_worker.report.progress import Progress, report_of

if TYPE_CHECKING:
    from banana_worker.formats import CallParams
    from banana_worker.process.channel import Channel
    from banana_worker.report.app_log import AppLog
    from banana_worker.report.app_metrics import OwnMetrics


NO_PARAMS: CallParams = MappingProxyType({})

# One lock for all contexts, because waits are rare. Reentrant: a signal handler may wait while its thread begins to.
_first_wait_lock = threading.RLock()


class WorkerInfo:
    """The slot of this worker."""

    def __init__(self, index: int, gpu: Optional[str], threads: int) -> None:
        # Number of the slot, from 0; it stays the same over restarts.
        self.index = index
        # The one GPU that this worker sees, as in CUDA_VISIBLE_DEVICES; None without a GPU.
        self.gpu = gpu
        # Cores this worker may use, at least 1.
        self.threads = threads


class InitContext(NamedTuple):
    """The context of `init`: the parts of a context that all calls of a worker share."""

    worker: WorkerInfo
    log: AppLog
    metrics: OwnMetrics


class JobInfo(NamedTuple):
    """A job: a call that outlives its client."""

    id: str
    # Number of this attempt, from 1.
    attempt: int


class CallContext:
    """The context of a call. All of it may be read from any thread."""

    __slots__ = (
        "call",
        "worker",
        "metrics",
        "params",
        "_log",
        "_worker_log",
        "_body",
        "_headers",
        "_query",
        "_reason",
        "_left",
        "_progress",
    )

    def __init__(self, call: Call, body: bytes, shared: InitContext, channel: Optional[Channel] = None) -> None:
        """`channel`: None in a test client's process, where there are no jobs."""
        self.call = call
        self.worker = shared.worker
        self.metrics = shared.metrics
        # The `parameters` of a request of KServe's protocols or of Vertex AI; empty for any other request.
        self.params: CallParams = NO_PARAMS
        self._worker_log = shared.log
        self._body: bytes = body
        self._log: Optional[AppLog] = None
        self._headers: Optional[Dict[str, str]] = None
        self._query: Optional[Dict[str, List[str]]] = None
        self._reason: Optional[str] = None
        self._left: Optional[threading.Event] = None
        # Made at once for a job: one that is made after the end of the call would not know of it.
        self._progress: Optional[Progress] = None
        if call.job_id and channel is not None:
            self._progress = Progress(channel, call.id)

    @property
    def call_id(self) -> int:
        """The call's id on the wire."""
        return self.call.id

    @property
    def request_id(self) -> str:
        """The request's id, also in the answer's X-Request-Id and in every log line of the call."""
        return self.call.request_id

    @property
    def path(self) -> str:
        """The path as the client wrote it, percent escapes included."""
        return self.call.path

    @property
    def content_type(self) -> str:
        """Content-Type as sent; empty if absent."""
        return self.call.content_type

    @property
    def deadline(self) -> Optional[float]:
        """The end of the client's deadline, as `time.time()` counts; None without a deadline."""
        deadline_ms = self.call.deadline_ms
        return None if deadline_ms is None else deadline_ms / 1000

    @property
    def body(self) -> bytes:
        """The body as it came."""
        return self._body

    def forget_body(self) -> None:
        """Frees the body, which is not needed any more; an app may keep the rest for long."""
        self._body = b""

    @property
    def headers(self) -> Dict[str, str]:
        """Request headers, names in lower case, repeated ones joined with `, `."""
        if self._headers is None:
            self._headers = _header_dict(self.call.headers)
        return self._headers

    @property
    def query(self) -> Dict[str, List[str]]:
        """The request's query: every value of each name, in their order."""
        if self._query is None:
            from urllib.parse import parse_qs

            self._query = parse_qs(self.call.query, keep_blank_values=True)
        return self._query

    @property
    def traceparent(self) -> Optional[str]:
        """The client's W3C trace context; None if it is absent or malformed."""
        sent = self.headers.get("traceparent", "")
        return sent if re.match(_TRACEPARENT, sent) else None

    @property
    def log(self) -> AppLog:
        """Writes lines to the server's log that carry the worker and the request's id."""
        if self._log is None:
            self._log = self._worker_log.of_call(self.call.request_id, self.traceparent or "")
        return self._log

    @property
    def job(self) -> Optional[JobInfo]:
        """The job that this call is an attempt at; None if its client waits."""
        call = self.call
        return JobInfo(call.job_id, call.job_attempt) if call.job_id else None

    def progress(self, fraction: float, text: str = "") -> None:
        """Reports how far the job is: a fraction from 0 to 1, and up to 200 characters for people. The newest one
        counts, four a second are sent. Does nothing in a call over HTTP whose client waits. Raises TypeError, ValueError."""
        newest = report_of(fraction, text)
        if self._progress is not None:
            self._progress.report(newest)

    def report_to(self, channel: Channel) -> None:
        """For the worker: the caller is a program, which learns of progress as a job does."""
        self._progress = Progress(channel, self.call.id)

    def end(self) -> None:
        """For the worker: the call gets its ending, and nothing more may be reported of it."""
        if self._progress is not None:
            self._progress.end()

    @property
    def cancelled(self) -> bool:
        """True once the answer is not needed any more: the client has left, a limit has passed, or the server stops."""
        return self._reason is not None

    @property
    def cancel_reason(self) -> str:
        """The reason for which the answer is not needed any more; empty before that."""
        return self._reason or ""

    def wait_cancelled(self, timeout: Optional[float] = None) -> bool:
        """Waits up to `timeout` seconds, or without a limit, until the call is cancelled; returns `cancelled`."""
        left = self._left_event()
        if self._reason is not None:
            return True
        return left.wait(timeout) or self.cancelled

    def cancel(self, reason: str) -> None:
        """For the worker: cancels the call for the app. The first reason stays."""
        if self._reason is None:
            self._reason = reason
        if self._left is not None:
            self._left.set()

    def _left_event(self) -> threading.Event:
        """One event for all waiting threads, made by the first of them."""
        with _first_wait_lock:
            if self._left is None:
                self._left = threading.Event()
            return self._left


def _header_dict(lines: str) -> Dict[str, str]:
    headers: Dict[str, str] = {}
    for name, value in header_lines(lines):
        key = name.lower()
        headers[key] = "%s, %s" % (headers[key], value) if key in headers else value
    return headers


# W3C Trace Context 2.2: version, non-zero trace id, non-zero parent id, flags. `ff` is not a version, and only a version
# after `00` may add fields.
_TRACEPARENT = r"(?!ff)(?!00.{54})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|\Z)"
