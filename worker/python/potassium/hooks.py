"""`send_webhook`, for apps. The front checks the URL again; an error raised here has a line of the app."""

from __future__ import annotations

import re
import sys
from typing import Any, Optional

from banana_worker.stand_in import names_of_module
from banana_worker.standard_modules import import_standard
from banana_worker.values.json_encoding import json_argument

__all__ = ["send_webhook"]


def send_webhook(
    url: str, json: Any, *, timeout_ms: Optional[int] = None, retries: Optional[int] = None, wait: bool = False
) -> None:
    """POSTs JSON to a URL. The server sends it, even if this worker dies next.

    Returns once the server has taken it over; with `wait`, when it was delivered or given up. A receiver that is
    down, slow or refuses raises nothing: the server retries, and logs a webhook that could not be delivered.
    `timeout_ms` bounds one attempt (10 s if left out), `retries` counts those after the first (3). In a test
    client's process, and in a process that the app has started, it is posted from there, once, at once and unsigned.
    Raises TypeError or ValueError if the URL is not valid, the JSON cannot be encoded or an option is wrong.
    """
    from banana_worker.run.webhook_handover import DEFAULT_RETRIES, DEFAULT_TIMEOUT_MS, offered_webhooks

    url, body = checked_url(url), json_argument(json, "send_webhook")
    limit_ms = DEFAULT_TIMEOUT_MS if timeout_ms is None else timeout_ms
    webhooks = offered_webhooks()
    if webhooks is not None:
        webhooks.post(url, body, limit_ms, DEFAULT_RETRIES if retries is None else retries, wait)
    else:
        _say_if_app_started_this()
        post_directly(url, body, limit_ms)


def _say_if_app_started_this() -> None:
    from banana_worker.in_worker import is_started_by_app
    from banana_worker.process import descriptors

    if descriptors.in_fork() or is_started_by_app():
        print(
            "This process was started by the app: it sends a webhook once, and unsigned. Send it from the worker itself.",
            file=sys.stderr,
            flush=True,
        )


def post_directly(url: str, body: bytes, timeout_ms: int) -> None:
    """Posts once. As with a server, a receiver that is down, slow, refuses or answers with rubbish raises nothing."""
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=timeout_ms / 1000) as response:
            response.read()
    except urllib.error.HTTPError as refused:
        print(f"Webhook to {url} was answered with {refused.code}", flush=True)
    except (OSError, HTTPException, ValueError):  # ValueError: raised for a redirect to an invalid URL
        print(f"Webhook to {url} failed with connection error", flush=True)  # Potassium's message


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


__getattr__ = names_of_module(__name__, __all__)
