"""The parts of a `multipart/form-data` body (RFC 7578), in one pass over its bytes."""

from __future__ import annotations

import re
from typing import Dict, Iterator, NamedTuple

from banana_worker.text.header_params import HeaderValue, params_of


class Part(NamedTuple):
    disposition: HeaderValue
    # The type that the part names; empty if it names none.
    content_type: HeaderValue
    content: bytes


# The bound that Node sets for the headers of a whole request.
MAX_HEAD_BYTES = 16 * 1024

# The limit that RFC 2046 sets in section 5.1.1.
MAX_BOUNDARY_CHARS = 70

_BLANK_LINE = b"\r\n\r\n"


def parts_of(body: bytes, content_type: str) -> Iterator[Part]:
    """Every part in order. @raises ValueError that describes the error of the first malformed part"""
    delimiter = b"\r\n--" + _boundary_of(content_type)
    at = _first_boundary_end(body, delimiter)
    number = 1
    while not _is_closed(body, at):
        start = _line_end(body, at)
        end = _index_or_raise(body, delimiter, start)
        yield _read_part(body, start, end, number)
        at = end + len(delimiter)
        number += 1


def _boundary_of(content_type: str) -> bytes:
    boundary = params_of(content_type).params.get("boundary", "")
    if boundary == "" or len(boundary) > MAX_BOUNDARY_CHARS:
        raise ValueError(f"its content type has no boundary of 1 to {MAX_BOUNDARY_CHARS} characters")
    return boundary.encode("utf-8", "surrogateescape")


def _first_boundary_end(body: bytes, delimiter: bytes) -> int:
    """The line break before the first boundary may be missing, since no bytes need to come before it."""
    if body.startswith(delimiter[2:]):
        return len(delimiter) - 2
    return _index_or_raise(body, delimiter, 0) + len(delimiter)


def _is_closed(body: bytes, at: int) -> bool:
    """Two dashes behind a boundary close the body."""
    if at + 2 > len(body):
        raise _cut_short()
    return body.startswith(b"--", at)


_PADDING = re.compile(rb"[ \t]*")


def _line_end(body: bytes, start: int) -> int:
    """The end of a boundary's line: its line break, which may also begin the next boundary."""
    padding = _PADDING.match(body, start)
    at = padding.end() if padding else start
    if at + 2 > len(body):
        raise _cut_short()
    if body.startswith(b"\r\n", at):
        return at
    raise ValueError("a boundary does not end its line")


def _read_part(body: bytes, start: int, end: int, number: int) -> Part:
    """A part reaches from the line break behind its boundary to the one before the next."""
    head_end = body.find(_BLANK_LINE, start, min(end, start + MAX_HEAD_BYTES))
    if head_end < 0:
        missing = f"headers within {MAX_HEAD_BYTES} bytes" if end - start > MAX_HEAD_BYTES else "headers"
        raise ValueError(f"part {number} has no {missing}, which end with an empty line")
    headers = _headers_of(body[start:head_end].decode("utf-8", "replace"))
    disposition = params_of(headers.get("content-disposition", ""))
    name = disposition.params.get("name", "")
    if disposition.value != "form-data" or name == "" or "\r" in name or "\n" in name:
        raise ValueError(f'part {number} has no "Content-Disposition: form-data" with a name')
    content_type = params_of(headers.get("content-type", ""))
    return Part(disposition, content_type, body[head_end + len(_BLANK_LINE) : end])


def _headers_of(head: str) -> Dict[str, str]:
    """Headers by their names in lower case. A line that begins with a space continues the one before."""
    headers: Dict[str, str] = {}
    for line in re.sub(r"\r\n[ \t]+", " ", head).split("\r\n"):
        name, colon, value = line.partition(":")
        if colon and name:
            headers[name.strip().lower()] = value.strip()
    return headers


def _index_or_raise(body: bytes, delimiter: bytes, start: int) -> int:
    index = body.find(delimiter, start)
    if index < 0:
        raise _cut_short()
    return index


def _cut_short() -> ValueError:
    return ValueError("Unexpected end of multipart data")
