"""An answer with its own status and headers, as an adapter describes it; its value and its error, for formats that write
a body of their own around them."""

from __future__ import annotations

import json
from typing import Any, Callable, NamedTuple, Optional, Union

from banana_worker.protocol.errors import ServeError, output_invalid
from banana_worker.text.header_params import media_type
from banana_worker.values.json_encoding import json_text


class ReplyHead(NamedTuple):
    status: int = 200
    content_type: str = ""
    # Lines: `name\nvalue`.
    headers: str = ""
    # Text beside the status; empty for the standard one.
    phrase: str = ""


class ValueBody(NamedTuple):
    """A value that is written by its type and the client's Accept header; the head does not count."""

    value: Any


class JsonBody(NamedTuple):
    value: Any


class ResultBody(NamedTuple):
    """A value that `formats/mms.py` writes; its type is used if the head has none."""

    value: Any


class BytesBody(NamedTuple):
    data: bytes


class StreamBody(NamedTuple):
    """`items` is an iterator or an async iterator."""

    items: Any
    # The content type is that of the first item, and not that of the head.
    type_from_chunk: bool = False
    # The client's Accept header decides the encoding and the head.
    by_accept: bool = False
    # Makes bytes of each item; None: its type says how.
    encode: Optional[Callable[[object], bytes]] = None
    # Makes the last chunk, behind those of the items.
    last: Optional[Callable[[], bytes]] = None
    # Called once, when the items have ended, failed or were closed.
    on_end: Optional[Callable[[], None]] = None


class Reply:
    def __init__(self, head: ReplyHead, body: Union[ValueBody, JsonBody, ResultBody, BytesBody, StreamBody]) -> None:
        self.head = head
        self.body = body


def close_items(items: Any) -> None:
    """Closes a stream, so that its `finally` blocks run."""
    close = getattr(items, "close", None)
    if callable(close):
        close()


async def close_async_items(items: Any) -> None:
    """`close_items` for an async iterator."""
    close = getattr(items, "aclose", None)
    closing: Any = close() if callable(close) else None
    if hasattr(type(closing), "__await__"):
        await closing


def close_unsent(body: Any) -> None:
    """Closes the stream of a body, if it is one, that no client gets."""
    if isinstance(body, StreamBody):
        close_items(body.items)
        if body.on_end is not None:
            body.on_end()


# Far more than any client reads (curl 300 KiB, Node 16 KiB), far less than a frame's head holds.
_MAX_HEADER_CHARS = 64 * 1024


def checked_headers(headers: str, content_type: str) -> str:
    """Returns the header lines unchanged. @raises ServeError SERVE_OUTPUT_INVALID if they and the type are too long"""
    size = len(headers) + len(content_type)
    if size <= _MAX_HEADER_CHARS:
        return headers
    raise output_invalid(f"The model's response headers are {size} characters; {_MAX_HEADER_CHARS} are allowed.")


def assert_no_error(answer: Reply) -> None:
    """@raises ServeError SERVE_HTTP_ERROR with the status of an error that the app has answered itself"""
    head, body = answer.head, answer.body
    if head.status >= 400:
        text = "" if isinstance(body, StreamBody) else error_text(head.content_type, body)
        raise ServeError("SERVE_HTTP_ERROR", text, status=head.status)


def value_of(body: Any, content_type: str) -> object:
    """The value of a whole answer; JSON or text is read, because the caller sees no content type."""
    if not isinstance(body, BytesBody):
        return body.value
    kind = media_type(content_type)
    if kind == "application/json":
        return json.loads(bytes(body.data))
    return bytes(body.data).decode() if kind.startswith("text/") else body.data


def error_text(content_type: str, body: Any) -> str:
    """The message of an error as most apps write one, else all of it."""
    value: Any = _parsed(content_type, body.data) if isinstance(body, BytesBody) else body.value
    error = value
    for name in ("error", "message"):
        error = error.get(name, error) if isinstance(error, dict) else error
    return error if isinstance(error, str) else json_text(value)


def _parsed(content_type: str, data: Any) -> Any:
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        return "The app refused this call."
    try:
        return json.loads(text) if media_type(content_type) == "application/json" else text
    except ValueError:
        return text
