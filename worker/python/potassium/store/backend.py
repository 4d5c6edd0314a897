"""A place that keeps bytes; `Store` adds encoding, checks and the end."""

from __future__ import annotations

import time
from typing import Optional


class Backend:
    """Every method may be called from any thread."""

    def get(self, key: str) -> Optional[bytes]:
        """Returns the bytes, None if the key is missing or expired."""
        raise NotImplementedError

    def set(self, key: str, data: bytes, ttl: Optional[float]) -> None:
        """`ttl` in seconds; None: the value never expires."""
        raise NotImplementedError

    def delete(self, key: str) -> bool:
        """Returns whether there was an unexpired value."""
        raise NotImplementedError

    def has(self, key: str) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        """Frees the backend's resources; no call follows."""


NEVER = float("inf")


def expiry_of(ttl: Optional[float]) -> float:
    """The time at which a value of this lifetime expires, as `time.time()` counts."""
    return NEVER if ttl is None else time.time() + ttl
