"""`send_webhook`, for apps."""

from __future__ import annotations

import sys
from typing import Any, Optional

from banana_worker.stand_in import names_of_module
from banana_worker.values.json_encoding import json_argument

from .webhook_url import checked_url

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
    from banana_worker.run.webhook_handover import DEFAULT_RETRIES, DEFAULT_TIMEOUT_MS, is_offered, post

    url, body = checked_url(url), json_argument(json, "send_webhook")
    limit_ms = DEFAULT_TIMEOUT_MS if timeout_ms is None else timeout_ms
    if is_offered():
        tries = DEFAULT_RETRIES if retries is None else retries
        post(url, body, timeout_ms=limit_ms, retries=tries, wait=wait)
    else:
        from .direct_webhook import post_directly

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


__getattr__ = names_of_module(__name__, __all__)
