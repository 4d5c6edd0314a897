"""The paths that the front answers by itself: a Potassium app may not declare them."""

from __future__ import annotations

HEALTH_PATHS = ("/healthcheck", "/livez", "/readyz")
STATUS_PATH = "/status"
POTASSIUM_STATUS_PATHS = ("/_k/status", "/__status__")
WARM_UP_PATH = "/_k/warmup"
_RESERVED = {*HEALTH_PATHS, STATUS_PATH, *POTASSIUM_STATUS_PATHS, "/_k"}


def is_reserved_path(path: str) -> bool:
    return path in _RESERVED or path.startswith(("/readyz/", "/_k/"))
