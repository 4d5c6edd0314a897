"""`app.test_client()`: calls an app in the test's own process, as Potassium's tests do.

1. `request.py` turns a request of the test into a call.
2. `TestClient` does the server's part of it: routes, refusals, status, warm-up.
3. `app_thread.py` runs init, and then one call after the other, on one thread, as a worker runs them.
4. `response.py` is the test's view of the answer.
"""

from __future__ import annotations

import json as json_codec
import math
import re
from typing import Any, Dict, List, Optional

from banana_worker.formats.json import read_json
from banana_worker.protocol.errors import ServeError, bad_body
from banana_worker.protocol.messages import Call, Route
from banana_worker.protocol.tables import CALL_ERRORS, HEALTH_PATHS, POTASSIUM_STATUS_PATHS, WARM_UP_PATH

from ..status import PotassiumStatus, StatusEvent
from .app_thread import Answer, AppThread
from .request import NO_JSON, Data, Headers, Query, request_of
from .response import TestResponse

JSON_LINES = [("Content-Type", "application/json")]
# Statuses in the house dialect; every other code is a 500.
_STATUS = {
    "SERVE_BAD_REQUEST": 400,
    "SERVE_BAD_BODY": 400,
    "SERVE_NOT_FOUND": 404,
    "SERVE_METHOD_NOT_ALLOWED": 405,
    "SERVE_INPUT_INVALID": 422,
    "SERVE_UPGRADE_REQUIRED": 426,
    "SERVE_SHUTTING_DOWN": 503,
}
_JSON_TYPE = re.compile(r"application/(?:[\w.!#$&^-]+\+)?json\s*(?:;|\Z)", re.IGNORECASE)


class TestClient:
    """A test's view of an app: calls by path, answers whole. Ends with the test, or with `close`."""

    # pytest would take the class for tests.
    __test__ = False

    def __init__(self, app: Any) -> None:
        """Runs `init` on the app's thread. Raises its exception."""
        self._thread = AppThread(app)

    def post(self, path: str, **request: Any) -> TestResponse:
        """`json=` any JSON value; or `data=` bytes, text or a dict that is sent as a form. `headers=`, `content_type=`,
        `query_string=`."""
        return self.open(path, method="POST", **request)

    def get(self, path: str, **request: Any) -> TestResponse:
        return self.open(path, method="GET", **request)

    def open(
        self,
        path: str,
        *,
        method: str = "GET",
        json: Any = NO_JSON,
        data: Data = None,
        headers: Headers = None,
        content_type: Optional[str] = None,
        query_string: Query = None,
    ) -> TestResponse:
        """A request of any method."""
        call, body = request_of(method, path, json, data, headers, content_type, query_string)
        try:
            status, lines, data = self._own_page(call) or self._call(call, body)
        except ServeError as error:
            status, lines, data = _failure(error, call.request_id)
        return TestResponse(status, [*lines, ("X-Request-Id", call.request_id)], b"" if call.method == "HEAD" else data)

    def close(self) -> None:
        """Takes no more calls, without waiting for one that runs."""
        self._thread.close()

    def __enter__(self) -> TestClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _own_page(self, call: Call) -> Optional[Answer]:
        """The answer of a path that the server answers by itself."""
        is_read = call.method in ("GET", "HEAD")
        if call.path == WARM_UP_PATH and (is_read or call.method == "POST"):
            if not is_read:
                self._thread.note(StatusEvent.INFERENCE_REQUEST_RECEIVED)
                self._thread.note(StatusEvent.INFERENCE_END, None)
            return _page({"warm": True})
        if is_read and call.path in POTASSIUM_STATUS_PATHS:
            return _page(_described(self._thread.status))
        if is_read and call.path in HEALTH_PATHS:
            return _page({"state": "healthy", "gpu": False})
        return None

    def _call(self, call: Call, body: bytes) -> Answer:
        try:
            route = self._fitting_route(call, body)
        except ServeError:
            if call.method == "POST":
                self._thread.note(StatusEvent.BAD_REQUEST_RECEIVED)
            raise
        was_idle = self._thread.note(StatusEvent.INFERENCE_REQUEST_RECEIVED)
        submitted = self._thread.submit(call, body, route)
        if route.kind != "background":
            return submitted.answer.result()
        if was_idle:
            # Right after, a test may wake the function.
            submitted.begun.wait()
        return _page({"started": True})

    def _fitting_route(self, call: Call, body: bytes) -> Route:
        route = next((each for each in self._thread.app.description.routes if each.path == call.path), None)
        if route is None and call.method in ("GET", "HEAD", "POST"):
            raise ServeError("SERVE_NOT_FOUND", "No such route.")
        if route is None or call.method != "POST":
            raise ServeError("SERVE_METHOD_NOT_ALLOWED", f"{call.path} takes POST, not {call.method}.")
        if route.kind == "websocket":
            raise ServeError(
                "SERVE_UPGRADE_REQUIRED", "This route is a WebSocket, which a test client does not support."
            )
        if route.input == "json":
            _check_json(call, body, route)
        return route


def _check_json(call: Call, body: bytes, route: Route) -> None:
    if _JSON_TYPE.match(call.content_type.strip()) is None:
        raise ServeError("SERVE_BAD_REQUEST", "This route takes JSON: send Content-Type: application/json.")
    if not body:
        raise bad_body("This route takes JSON, and the body is empty.")
    if route.kind == "background":
        read_json(body)


def _described(status: PotassiumStatus) -> Dict[str, Any]:
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


def _page(value: Any) -> Answer:
    return 200, JSON_LINES, json_codec.dumps(value, separators=(",", ":")).encode() + b"\n"


def _failure(error: ServeError, request_id: str) -> Answer:
    is_of_app = error.code in CALL_ERRORS and error.code != "SERVE_BAD_BODY"
    fields: Dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "requestId": request_id,
        "source": "app" if is_of_app else "server",
        "begun": is_of_app and error.code != "SERVE_INPUT_INVALID",
    }
    if error.issues:
        fields["issues"] = [{"path": path, "message": text} for path, text in error.issues]
    own_status = error.status if error.code == "SERVE_HTTP_ERROR" else 0
    return own_status or _STATUS.get(error.code, 500), JSON_LINES, json_codec.dumps({"error": fields}).encode()


__all__: List[str] = ["TestClient", "TestResponse"]
