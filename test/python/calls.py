"""Calls as the wire delivers them, for tests."""

from __future__ import annotations

from typing import Any

from banana_worker.protocol.messages import Call


def call_with(**fields: Any) -> Call:
    """A POST to `/` without a body; `fields` replace its fields."""
    plain = Call(
        id=1,
        body_bytes=0,
        inline_bytes=0,
        request_id="r",
        route="/",
        path="/",
        query="",
        format="auto",
        content_type="",
        accept="*/*",
        deadline_ms=None,
        headers="",
    )
    return plain._replace(**fields)
