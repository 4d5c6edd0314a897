"""The value of an app's answer, for formats that write their own body around it."""

from __future__ import annotations

import json
from typing import Any

from banana_worker.formats.error_text import error_text
from banana_worker.formats.reply import BytesBody, Reply, StreamBody
from banana_worker.protocol.errors import ServeError
from banana_worker.text.header_params import media_type


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
