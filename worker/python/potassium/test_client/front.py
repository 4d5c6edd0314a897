"""The server's part of a request, before a worker gets it, and of the answer: routes, refusals, status, warm-up."""

from __future__ import annotations

import json
import math
import re
import threading
import uuid
from types import ModuleType
from typing import Any, Dict, List, Optional, Protocol, Tuple

from banana_worker.adapters.potassium_calls import PotassiumApp
from banana_worker.formats.json import read_json
from banana_worker.protocol.errors import ServeError
from banana_worker.protocol.messages import Call, Route

from ..definition import Definition
from ..reserved_paths import HEALTH_PATHS, POTASSIUM_STATUS_PATHS, WARM_UP_PATH
from ..status import PotassiumStatus, StatusEvent
from .handler_thread import Answer, HandlerThread
from .request import AskedRequest
from .response import TestResponse

JSON_LINES = [("Content-Type", "application/json")]
# Statuses in the house dialect; every other code is a 500.
_STATUS = {
    "SERVE_BAD_REQUEST": 400,
    "SERVE_BAD_BODY": 400,
    "SERVE_NOT_FOUND": 404,
    "SERVE_METHOD_NOT_ALLOWED": 405,
    "SERVE_UPGRADE_REQUIRED": 426,
    "SERVE_SHUTTING_DOWN": 503,
}
_OF_THE_APP = ("SERVE_INFERENCE_FAILED", "SERVE_HTTP_ERROR", "SERVE_OUTPUT_INVALID", "SERVE_OUTPUT_TOO_LARGE")
_JSON_TYPE = re.compile(r"application/(?:[\w.!#$&^-]+\+)?json\s*(?:;|\Z)", re.IGNORECASE)


class TestedApp(Protocol):
    """The parts of a `Potassium` app that a test client uses."""

    @property
    def name(self) -> str: ...

    @property
    def definition(self) -> Definition: ...

    def _write_event_chan(self, event: bool) -> None: ...


class Front:
    """One app, one worker's thread, and the counters of both."""

    def __init__(self, app: TestedApp) -> None:
        self._lock = threading.Lock()
        self._status = PotassiumStatus.initial(1)
        self._last_call_id = 0
        # Only the server reads `config` and other exports beside an app.
        self._app = PotassiumApp(app, ModuleType(app.name))
        self._thread = HandlerThread(self._app, self.note, app._write_event_chan)
        self._thread.start_app()

    def note(self, *event: Any) -> None:
        """Counts an event."""
        with self._lock:
            self._status = self._status.update(event)

    def close(self) -> None:
        self._thread.close()

    def answer(self, asked: AskedRequest) -> TestResponse:
        request_id = asked.header("x-request-id") or asked.header("x-banana-request-id") or str(uuid.uuid4())
        try:
            status, lines, body = self._own_page(asked) or self._call(asked, request_id)
        except ServeError as error:
            status, lines, body = _failure(error, request_id)
        return TestResponse(status, [*lines, ("X-Request-Id", request_id)], b"" if asked.method == "HEAD" else body)

    def _own_page(self, asked: AskedRequest) -> Optional[Answer]:
        """The answer of a path that the server answers by itself."""
        is_read = asked.method in ("GET", "HEAD")
        if asked.path == WARM_UP_PATH and (is_read or asked.method == "POST"):
            if not is_read:
                self.note(StatusEvent.INFERENCE_REQUEST_RECEIVED)
                self.note(StatusEvent.INFERENCE_END, None)
            return _page({"warm": True})
        if is_read and asked.path in POTASSIUM_STATUS_PATHS:
            return _page(self._describe())
        if is_read and asked.path in HEALTH_PATHS:
            return _page({"state": "healthy", "gpu": False})
        return None

    def _describe(self) -> Any:
        status = self._status
        return {
            "gpu_available": status.gpu_available,
            # At least 1 ms once a time has begun: tests check that it is above 0.
            "idle_time": math.ceil(status.idle_time * 1000),
            "inference_time": math.ceil(status.longest_inference_time * 1000),
            "sequence_number": status.sequence_number,
            "workers": status.num_workers,
            "workers_ready": status.num_workers_started,
            "in_flight": len(status.in_flight_request_start_times),
            "completed": status.num_completed_inference_requests,
        }

    def _call(self, asked: AskedRequest, request_id: str) -> Answer:
        try:
            route = self._fitting_route(asked)
        except ServeError:
            if asked.method == "POST":
                self.note(StatusEvent.BAD_REQUEST_RECEIVED)
            raise
        self._last_call_id += 1
        was_idle = self._note_received()
        call = _call_of(asked, route, request_id, self._last_call_id)
        if route.kind != "background":
            return self._thread.submit(call, asked.body, route).result()
        submit = self._thread.submit_until_begun if was_idle else self._thread.submit
        submit(call, asked.body, route)
        return 200, JSON_LINES, b'{"started":true}\n'

    def _note_received(self) -> bool:
        """Whether no call was in progress before."""
        with self._lock:
            was_idle = self._status.requests_in_progress == 0
            self._status = self._status.update((StatusEvent.INFERENCE_REQUEST_RECEIVED,))
        return was_idle

    def _fitting_route(self, asked: AskedRequest) -> Route:
        route = next((each for each in self._app.description.routes if each.path == asked.path), None)
        if asked.method != "POST":
            if route is None and asked.method in ("GET", "HEAD"):
                raise ServeError("SERVE_NOT_FOUND", "No such route.")
            raise ServeError("SERVE_METHOD_NOT_ALLOWED", f"{asked.path} takes POST, not {asked.method}.")
        if route is None:
            raise ServeError("SERVE_NOT_FOUND", "No such route.")
        if route.kind == "websocket":
            raise ServeError(
                "SERVE_UPGRADE_REQUIRED", "This route is a WebSocket, which a test client does not support."
            )
        if route.input == "json":
            _check_json(asked, route)
        return route


def _check_json(asked: AskedRequest, route: Route) -> None:
    if _JSON_TYPE.match(asked.content_type.strip()) is None:
        raise ServeError("SERVE_BAD_REQUEST", "This route takes JSON: send Content-Type: application/json.")
    if not asked.body:
        raise ServeError("SERVE_BAD_BODY", "This route takes JSON, and the body is empty.")
    if route.kind == "background":
        read_json(asked.body)


def _call_of(asked: AskedRequest, route: Route, request_id: str, call_id: int) -> Call:
    return Call(
        id=call_id,
        body_bytes=len(asked.body),
        inline_bytes=len(asked.body),
        request_id=request_id,
        route=route.path,
        path=asked.path,
        query=asked.query,
        format="auto",
        content_type=asked.content_type,
        accept=asked.header("accept") or "",
        deadline_ms=None,
        headers="\n".join(part for line in asked.headers for part in line),
        method=asked.method,
    )


def _page(value: Any) -> Answer:
    return 200, JSON_LINES, json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _failure(error: ServeError, request_id: str) -> Tuple[int, List[Tuple[str, str]], bytes]:
    source = "app" if error.code in _OF_THE_APP else "server"
    fields: Dict[str, Any] = {"code": error.code, "message": error.message, "requestId": request_id, "source": source}
    if error.issues:
        fields["issues"] = [{"path": path, "message": text} for path, text in error.issues]
    own_status = error.status if error.code == "SERVE_HTTP_ERROR" else 0
    return own_status or _STATUS.get(error.code, 500), JSON_LINES, json.dumps({"error": fields}).encode()
