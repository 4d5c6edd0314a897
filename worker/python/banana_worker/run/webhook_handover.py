"""The worker's half of webhooks: passes them to the front, which sends, signs and retries them."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Optional

from banana_worker.failures.thrown import is_whole
from banana_worker.process import descriptors
from banana_worker.process.channel import Channel
from banana_worker.process.waits import Waits
from banana_worker.protocol.codec import encode_head
from banana_worker.protocol.errors import ProtocolError
from banana_worker.protocol.tables import (
    FIRST_WEBHOOK_REF,
    MAX_WEBHOOK_BYTES,
    MAX_WEBHOOK_RETRIES,
    MAX_WEBHOOK_TIMEOUT_MS,
)

DEFAULT_TIMEOUT_MS = 10_000
DEFAULT_RETRIES = 3

# The longest URL that servers take; it fits in the head of a frame.
_MAX_URL_CHARS = 16 * 1024


class WebhookHandover:
    def __init__(self, channel: Channel, waits: Waits, running_request_id: Callable[[], str]) -> None:
        self._channel = channel
        self._waits = waits
        self._running_request_id = running_request_id
        self._lock = threading.Lock()
        self._next_ref = FIRST_WEBHOOK_REF
        # Outcomes by their refs; None until the front has reported one.
        self._outcomes: Dict[int, Optional[str]] = {}

    def post(self, url: str, body: bytes, timeout_ms: int, retries: int, wait: bool) -> Optional[str]:
        """Hands JSON for a URL that is checked over to the front, which sends it even if this worker dies next.

        With `wait`, returns the outcome when the webhook was delivered or given up: `delivered`, `failed`, `dropped` or
        `unsent`. Without, returns None at once. May be called from any thread. `timeout_ms` is the limit of one attempt.
        @raises ValueError if the URL is too long, the body is over 16 MiB, or a number is out of range"""
        check_webhook(url, body, timeout_ms, retries)
        with self._lock:
            ref = self._next_ref
            self._next_ref += 1
        if wait:
            self._outcomes[ref] = None
        request_id = self._running_request_id()
        fields = ["webhook", ref, url, "", request_id, timeout_ms, retries, wait, len(body)]
        self._channel.send_body(encode_head(fields), ref, body)
        if not wait:
            return None
        self._waits.wait(lambda: self._outcomes[ref] is not None)
        return self._outcomes.pop(ref)

    def on_done(self, ref: Any, outcome: str) -> None:
        """Takes an outcome from the front. For the thread that reads messages. @raises ProtocolError"""
        if not isinstance(ref, (int, float)) or not FIRST_WEBHOOK_REF <= ref < self._next_ref:
            raise ProtocolError("webhook %r was not sent to the server" % (ref,))
        if int(ref) in self._outcomes:
            self._outcomes[int(ref)] = outcome


def check_webhook(url: str, body: bytes, timeout_ms: Any, retries: Any) -> None:
    """@raises ValueError without the URL in its text, because that may hold a password"""
    if len(url) > _MAX_URL_CHARS:
        raise ValueError("the URL of a webhook has %d characters; %d are allowed" % (len(url), _MAX_URL_CHARS))
    if len(body) > MAX_WEBHOOK_BYTES:
        raise ValueError("the body of a webhook has %d bytes; %d are allowed" % (len(body), MAX_WEBHOOK_BYTES))
    _check_whole("timeout_ms", timeout_ms, 1, MAX_WEBHOOK_TIMEOUT_MS)
    _check_whole("retries", retries, 0, MAX_WEBHOOK_RETRIES)


def _check_whole(name: str, value: Any, least: int, most: int) -> None:
    if not is_whole(value, least, most):
        raise ValueError("the %s of a webhook must be a whole number from %d to %d" % (name, least, most))


_offered: Optional[WebhookHandover] = None


def offer_webhooks(handover: WebhookHandover) -> None:
    """Called once when the worker starts."""
    global _offered
    _offered = handover


def offered_webhooks() -> Optional[WebhookHandover]:
    """None outside of a worker: in a test's process, and in processes that an app starts."""
    return None if descriptors.in_fork() else _offered
