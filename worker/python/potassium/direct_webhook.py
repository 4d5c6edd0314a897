"""Webhooks without a server: posted once, from the test's own process."""

from __future__ import annotations

import urllib.error
import urllib.request
from http.client import HTTPException
from typing import List, Optional, Tuple

from banana_worker.protocol.messages import Route
from banana_worker.run.webhook_handover import DEFAULT_TIMEOUT_MS


def post_directly(url: str, body: bytes, timeout_ms: int) -> None:
    """Posts once. As with a server, a receiver that is down, slow, refuses or answers with rubbish raises nothing."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=timeout_ms / 1000) as response:
            response.read()
    except urllib.error.HTTPError as refused:
        print(f"Webhook to {url} was answered with {refused.code}", flush=True)
    except (OSError, HTTPException, ValueError):  # ValueError: raised for a redirect to an invalid URL
        print(f"Webhook to {url} failed with connection error", flush=True)  # Potassium's message


def post_result(route: Route, answer: Optional[Tuple[int, List[Tuple[str, str]], bytes]]) -> None:
    """Posts the JSON answer of a route that has a webhook for it."""
    if not route.webhook or answer is None:
        return
    status, lines, body = answer
    content_type = next((value for name, value in lines if name == "Content-Type"), "")
    is_told = status < 300 or route.kind == "background"
    if is_told and content_type.startswith("application/json"):
        post_directly(route.webhook, body, DEFAULT_TIMEOUT_MS)
