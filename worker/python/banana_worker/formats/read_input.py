"""Reads a call's body in the format that the dialect fixed, else in the one that the content type names."""

from __future__ import annotations

import json
from typing import Any

from banana_worker.errors import ServeError
from banana_worker.input_wishes import NO_WISHES, InputWishes
from banana_worker.messages import Call


def read_input(call: Call, body: bytes, wishes: InputWishes = NO_WISHES) -> Any:
    """The value the app gets; None for an empty body. @raises ServeError SERVE_BAD_BODY"""
    if not body:
        return None
    if call.format == "bytes" or call.content_type == "application/octet-stream":
        return body
    try:
        return json.loads(body)
    except ValueError as error:
        raise ServeError("SERVE_BAD_BODY", "The body is not valid JSON: %s" % error)
