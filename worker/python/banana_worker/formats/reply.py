"""An answer with its own status and headers, as an adapter describes it."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional, Union

from banana_worker.protocol.errors import ServeError


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


class Reply:
    def __init__(self, head: ReplyHead, body: Union[ValueBody, JsonBody, ResultBody, BytesBody, StreamBody]) -> None:
        self.head = head
        self.body = body


# Far more than any client reads (curl 300 KiB, Node 16 KiB), far less than a frame's head holds.
_MAX_HEADER_CHARS = 64 * 1024


def checked_headers(headers: str, content_type: str) -> str:
    """Returns the header lines unchanged. @raises ServeError SERVE_OUTPUT_INVALID if they and the type are too long"""
    size = len(headers) + len(content_type)
    if size <= _MAX_HEADER_CHARS:
        return headers
    message = f"The model's response headers are {size} characters; {_MAX_HEADER_CHARS} are allowed."
    raise ServeError("SERVE_OUTPUT_INVALID", message)
