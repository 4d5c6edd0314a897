"""Text, for apps that ask for it; others get such bodies read as JSON."""

from __future__ import annotations

import json

from banana_worker.charsets import decode_strictly
from banana_worker.errors import ServeError
from banana_worker.header_params import params_of
from banana_worker.messages import Call


def read(body: bytes, call: Call) -> str:
    """Decodes the body in the charset that its type names, else as UTF-8. @raises SERVE_BAD_BODY"""
    charset = params_of(call.content_type).params.get("charset", "utf-8")
    try:
        return decode_strictly(body, charset)
    except ValueError as cause:
        raise ServeError("SERVE_BAD_BODY", f"The body is not text in {json.dumps(charset[:40])}.") from cause
