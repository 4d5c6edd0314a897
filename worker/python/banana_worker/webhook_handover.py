"""The worker's half of webhooks: hands them over to the front, which sends, signs and tries again."""

from __future__ import annotations

from typing import Optional

DEFAULT_TIMEOUT_MS = 10_000
DEFAULT_RETRIES = 3


def is_offered() -> bool:
    """Whether this process is a worker, and `post` has somebody to hand over to. A test's own process has nobody."""
    return False


def post(
    url: str,
    body: bytes,
    content_type: str = "application/json",
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
    retries: int = DEFAULT_RETRIES,
    wait: bool = False,
) -> Optional[str]:
    """Hands a webhook over to the front: it goes out even if this worker dies next.

    With `wait` it returns when the webhook was delivered or given up: `delivered`, `failed`, `dropped` or `unsent`; else at
    once, and None. May be called from any thread. `timeout_ms` is that of one attempt.
    @raises ValueError if the URL is none, the body is over 16 MiB, or a number is out of range
    @raises RuntimeError outside a worker
    """
    raise NotImplementedError
