"""Text bodies, for apps that ask for them; others get such bodies read as JSON."""

from __future__ import annotations

import json

from banana_worker.failures.sentences import as_sentence
from banana_worker.protocol.errors import bad_body
from banana_worker.protocol.messages import Call
from banana_worker.text.charsets import decode_strictly
from banana_worker.text.header_params import params_of

ITEM_TYPE = "text/plain"


def read(body: bytes, call: Call) -> str:
    """Decodes the body in the charset of its type, or else as UTF-8. @raises SERVE_BAD_BODY"""
    charset = _charset_of(call.content_type)
    try:
        return decode_strictly(body, charset)
    except ValueError as cause:
        raise bad_body(f"The body is not text in {json.dumps(charset[:40])}.") from cause


def _charset_of(content_type: str) -> str:
    try:
        return params_of(content_type).params.get("charset", "utf-8")
    except ValueError as cause:
        raise bad_body(f"The content type cannot be read: {as_sentence(str(cause))}") from cause
