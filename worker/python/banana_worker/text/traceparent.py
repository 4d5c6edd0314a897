"""W3C Trace Context 2.2: version, non-zero trace id, non-zero parent id, flags.

`ff` is not a version, and only a version after `00` may add fields.
"""

from __future__ import annotations

import re

_TRACEPARENT = re.compile(
    r"(?!ff)(?!00.{54})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|\Z)"
)


def valid_traceparent(value: str) -> str:
    """The value of a valid `traceparent` header; empty if it is absent or malformed, as the standard requires."""
    return value if _TRACEPARENT.match(value) else ""
