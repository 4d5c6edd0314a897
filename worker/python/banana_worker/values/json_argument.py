"""JSON of a value that the app passes to a function of ours."""

from __future__ import annotations

from banana_worker.protocol.errors import ServeError
from banana_worker.values.json_encoding import json_bytes


def json_argument(value: object, function: str) -> bytes:
    """The value as JSON in UTF-8. @raises TypeError that names the function and the place of a value that is not
    data"""
    try:
        return json_bytes(value)
    except ServeError as cause:
        raise TypeError(cause.message.replace("The output", f"{function}: the value", 1)) from cause
