"""`app.test_client()`: calls an app in the test's own process, as Potassium's tests do.

1. `front.py` does the server's part of a request: routes, refusals, status, warm-up.
2. `handler_thread.py` runs init, and then one call after the other, on one thread, with the worker's own adapter and
formats.
3. `response.py` is the test's view of the answer.
"""

from __future__ import annotations

import json as json_codec
from types import TracebackType
from typing import Any, List, Mapping, Optional, Tuple, Type, Union

from .front import Front, TestedApp
from .request import AskedRequest
from .response import TestResponse

Data = Union[str, bytes, Mapping[str, Any], None]

_NO_JSON: Any = object()


class TestClient:
    """A test's view of an app: calls by path, answers whole. Ends with the test, or with `close`."""

    # pytest would take the class for tests.
    __test__ = False

    def __init__(self, app: TestedApp) -> None:
        """Runs `init` on the app's thread. Raises its exception."""
        self._front = Front(app)

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
        json: Any = _NO_JSON,
        data: Data = None,
        headers: Union[Mapping[str, str], List[Tuple[str, str]], None] = None,
        content_type: Optional[str] = None,
        query_string: Union[str, Mapping[str, Any], None] = None,
    ) -> TestResponse:
        """A request of any method."""
        body, type_of_body = _body_of(json, data)
        lines = _header_lines(headers)
        type_of_headers = next((value for name, value in lines if name.lower() == "content-type"), None)
        sent_type = content_type or type_of_headers or type_of_body
        others = [line for line in lines if line[0].lower() != "content-type"]
        if sent_type:
            others.append(("Content-Type", sent_type))
        target, _, query = path.partition("?")
        return self._front.answer(
            AskedRequest(method.upper(), _absolute(target), _query_of(query, query_string), others, sent_type, body)
        )

    def close(self) -> None:
        """Takes no more calls, without waiting for one that runs."""
        self._front.close()

    def __enter__(self) -> TestClient:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        raised: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


def _body_of(json: Any, data: Data) -> Tuple[bytes, str]:
    """The bytes, and their content type unless the test gives another."""
    if json is not _NO_JSON:
        if data is not None:
            raise ValueError("a test request has json or data, not both")
        return json_codec.dumps(json).encode(), "application/json"
    if isinstance(data, str):
        return data.encode(), ""
    if isinstance(data, Mapping):
        from urllib.parse import urlencode

        return urlencode(dict(data), doseq=True).encode(), "application/x-www-form-urlencoded"
    if data is not None and not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data of a test request is bytes, text or a dict, not {type(data).__name__}")
    return bytes(data or b""), ""


def _header_lines(headers: Union[Mapping[str, str], List[Tuple[str, str]], None]) -> List[Tuple[str, str]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or []
    return [(str(name), str(value)) for name, value in pairs]


def _query_of(query: str, given: Union[str, Mapping[str, Any], None]) -> str:
    from urllib.parse import urlencode

    added = urlencode(dict(given), doseq=True) if isinstance(given, Mapping) else given or ""
    return "&".join(part for part in (query, added) if part)


__all__: List[str] = ["TestClient", "TestResponse"]
