"""The text of an error that the app has answered itself, for formats that word it in their own way."""

from __future__ import annotations

import json
from typing import Any

from banana_worker.formats.reply import BytesBody
from banana_worker.text.header_params import media_type
from banana_worker.values.json_encoding import json_text


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
