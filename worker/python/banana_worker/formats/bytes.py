"""Bodies that the app reads itself, and bytes that it gives."""

from __future__ import annotations

from banana_worker.protocol.messages import Call


def read(body: bytes, call: Call) -> bytes:
    """The body as it came."""
    return body
