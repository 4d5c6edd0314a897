"""The paths that the front answers by itself: a Potassium app may not declare them."""

from __future__ import annotations

from banana_worker.protocol.tables import RESERVED_PATHS, RESERVED_PREFIXES


def is_reserved_path(path: str) -> bool:
    return path in RESERVED_PATHS or path.startswith(RESERVED_PREFIXES)
