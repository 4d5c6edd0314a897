"""Checks the URL of a webhook. The front checks it again; an error raised here has a line of the app."""

from __future__ import annotations

import re
from typing import Any

from banana_worker.standard_modules import import_standard

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_FORM = re.compile(r"https?://[^\s/?#]\S*\Z", re.IGNORECASE)

# Characters that a host name cannot contain, also as escapes.
_NO_HOST = re.compile(r"[<>^|\x00-\x20]|%(?![0-9a-f]{2})", re.IGNORECASE)

# A host whose last part looks like a number is an address, of at most four numbers: hexadecimal, octal or decimal ones.
_IS_ADDRESS = re.compile(r"(?:[^:]*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?\Z", re.IGNORECASE)
_EMPTY_NUMBER = re.compile(r"\b0x\b", re.IGNORECASE)


def checked_url(url: object) -> str:
    """Returns the URL. Raises TypeError or ValueError unless it is an absolute http: or https: URL; the message does
    not repeat the URL, which may hold a password."""
    if not isinstance(url, str):
        raise TypeError(f"the URL of a webhook must be text, not {type(url).__name__}")
    scheme = _SCHEME.match(url)
    if scheme is not None and scheme[0].lower() not in ("http:", "https:"):
        raise ValueError(f"the URL of a webhook must begin with http: or https:, not {scheme[0].lower()}")
    if _FORM.match(url) is None or not _has_host(url):
        raise ValueError("the URL of a webhook must be absolute, such as https://example.com/hook")
    return url


def _has_host(url: str) -> bool:
    parse: Any = import_standard("urllib.parse")
    try:
        place = parse.urlsplit(url)
        host, _ = place.hostname, place.port  # either may raise
    except ValueError:  # its text may contain the URL
        return False
    if not host or _NO_HOST.search(host) is not None:
        return False
    name = parse.unquote(host)
    return _IS_ADDRESS.match(name) is None or _is_address(name)


def _is_address(host: str) -> bool:
    """Whether these numbers are an address, in which the last one may be several bytes: 127.1 is 127.0.0.1. As in a URL, one
    dot may follow, and `0x` is 0."""
    try:
        import_standard("socket").inet_aton(_EMPTY_NUMBER.sub("0", host[:-1] if host.endswith(".") else host))
        return True
    except OSError:
        return False
