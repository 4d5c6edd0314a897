"""Bodies that the app reads by itself."""

from __future__ import annotations

from banana_worker.protocol.messages import Call

ITEM_TYPE = "application/octet-stream"


def read(body: bytes, call: Call) -> bytes:
    """The body as it came."""
    return body
