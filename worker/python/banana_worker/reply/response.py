"""The `Response` of `potassium` and `banana_serve`, which an app of any kind may return or raise, and its reply."""

from __future__ import annotations

import json as json_codec
from typing import Any, AsyncIterable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from banana_worker.protocol.errors import output_invalid
from banana_worker.formats.reply import BytesBody, JsonBody, Reply, ReplyHead, StreamBody, checked_headers
from banana_worker.text.charsets import utf8

ResponseBody = Union[str, bytes, bytearray, memoryview, Iterable[Any], AsyncIterable[Any]]
HeaderValue = Union[str, List[str], Tuple[str, ...]]

CONTENT_TYPE = "Content-Type"
JSON_TYPE = "application/json"
_BYTES_TYPE = "application/octet-stream"


# Stands for a missing JSON, because None is a value.
_UNSET: Any = object()


class Response(Exception):
    """The answer of a handler: JSON or a body, not both. Without either, the answer is empty. An exception, because it
    may also be raised."""

    def __init__(
        self,
        status: int = 200,
        json: Any = None,
        headers: Optional[Mapping[str, HeaderValue]] = None,
        body: Optional[ResponseBody] = None,
    ) -> None:
        if json is not None and body is not None:
            raise AssertionError("Potassium Response object cannot have both json and body set")
        self.status = checked_status(status)
        self.headers: Dict[str, HeaderValue] = dict(headers or {})
        self._json: Any = _UNSET
        self._body = body
        if json is not None:
            self.json = json

    @property
    def json(self) -> Any:
        """The given value, or the body read as JSON; None if there is neither."""
        if self._json is not _UNSET:
            return self._json
        if not isinstance(self._body, (str, bytes, bytearray)):
            return None
        try:
            return json_codec.loads(self._body)
        except ValueError:
            return None  # documented: None for a body that is not JSON

    @json.setter
    def json(self, value: Any) -> None:
        """Sets the JSON value, which replaces the body; the content type becomes `application/json`."""
        self._json = value
        self._body = None
        for name in [name for name in self.headers if name.lower() == "content-type"]:
            del self.headers[name]
        self.headers[CONTENT_TYPE] = JSON_TYPE

    @property
    def body(self) -> Any:
        """The given body, or the given JSON as bytes."""
        return self._body if self._json is _UNSET else json_codec.dumps(self._json).encode()

    @body.setter
    def body(self, body: Optional[ResponseBody]) -> None:
        self._json = _UNSET
        self._body = body

    @property
    def is_json(self) -> bool:
        """Whether the answer is `json`, and not `body`."""
        return self._json is not _UNSET

    def __str__(self) -> str:
        return f"status {self.status}"

    def __repr__(self) -> str:
        return f"Response(status={self.status})"


def checked_status(status: object) -> int:
    """Returns the status. Raises ValueError on one that no answer can have."""
    # An HTTPStatus is an int too.
    if isinstance(status, int) and not isinstance(status, bool) and 200 <= status <= 599:
        return int(status)
    raise ValueError(f"status {status!r} is not a whole number from 200 to 599")


# The name in tracebacks, and for pickle.
Response.__module__ = "potassium.types"


def reply_of_response(response: Response) -> Reply:
    """The reply that it describes. @raises TypeError, ValueError or ServeError if it cannot be sent"""
    status = checked_status(response.status)
    body, usual_type = _body_of(response)
    content_type, headers = _headers_of(response.headers)
    return Reply(ReplyHead(status, content_type or usual_type, headers), body)


def may_answer_several(response: Response) -> bool:
    """Whether several calls can get it as their answer: it reports an error, and its body can be sent again."""
    is_whole = response.is_json or isinstance(response.body, (type(None), str, bytes, bytearray))
    return response.status >= 400 and is_whole


def _body_of(response: Response) -> Tuple[Any, str]:
    """The body, and its content type if the headers name none."""
    if response.is_json:
        return JsonBody(response.json), JSON_TYPE
    body = response.body
    if body is None:
        return BytesBody(b""), ""
    if isinstance(body, str):
        return BytesBody(utf8(body)), "text/plain; charset=utf-8"
    if isinstance(body, (bytes, bytearray, memoryview)):
        return BytesBody(bytes(body)), _BYTES_TYPE
    if hasattr(body, "__aiter__"):
        return StreamBody(body.__aiter__()), _BYTES_TYPE
    if isinstance(body, dict) or not hasattr(body, "__iter__"):
        raise TypeError(
            f"Potassium Response object body must be bytes, text, or an iterable of them, not {type(body).__name__}"
        )
    return StreamBody(iter(body)), _BYTES_TYPE


def _headers_of(headers: Dict[str, Any]) -> Tuple[str, str]:
    """The content type, and the other headers as lines."""
    content_type = ""
    lines: List[str] = []
    for name, value in headers.items():
        for each in value if isinstance(value, (list, tuple)) else (value,):
            text = str(each)
            if "\n" in name or "\r" in name or "\n" in text or "\r" in text:
                # It would end the header and begin another one.
                given = json_codec.dumps(name[:100], ensure_ascii=False)
                raise output_invalid(f"The model's response header {given} has a line break in it.")
            if name.lower() == "content-type":
                content_type = text
            else:
                lines += (name, text)
    return content_type, checked_headers("\n".join(lines), content_type)
