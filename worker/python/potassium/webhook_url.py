"""Where a webhook may be posted. The front checks again; here a mistake has a line of the app's."""

from __future__ import annotations

import re

from banana_worker.standard_modules import import_standard

_FORM = re.compile(r"https?://[^\s/?#]\S*\Z", re.IGNORECASE)

# What no host name can hold, also where it is escaped.
_NO_HOST = re.compile(r"[<>^|\x00-\x20]|%(?![0-9a-f]{2})", re.IGNORECASE)


def checked_url(url: object) -> str:
    """Returns the URL. Raises TypeError or ValueError unless it is an absolute http: or https: URL; does not repeat it,
    for it may hold a password."""
    if not isinstance(url, str):
        raise TypeError(f"the URL of a webhook must be text, not {type(url).__name__}")
    if _FORM.match(url) is None or not _has_host(url):
        raise ValueError("the URL of a webhook must be absolute, such as https://example.com/hook")
    return url


def _has_host(url: str) -> bool:
    try:
        place = import_standard("urllib.parse").urlsplit(url)
        host, _ = place.hostname, place.port  # either may raise
    except ValueError:  # its text may hold the URL
        return False
    return bool(host) and _NO_HOST.search(host) is None
