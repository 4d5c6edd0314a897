"""An exception with which an app refuses a call: a status and a message for the client."""

from __future__ import annotations

from typing import Sequence, Tuple

from banana_worker.failures.sentences import kind_of


class HttpError(Exception):
    """Raised, or returned, by an app of any kind: the client gets the status and the message, with the code
    `SERVE_HTTP_ERROR`. Raised for a batch, it is the answer of each of its calls."""

    def __init__(self, status: int, message: str = "", *, issues: Sequence[Tuple[Sequence[object], str]] = ()) -> None:
        """`status`: 400 to 599. `issues`: path and message of each wrong value in the input, which the client gets in a
        list. @raises ValueError for another number; TypeError for a message that is not text"""
        if not is_error_status(status):
            raise ValueError(f"HttpError(status, message): {status!r} is not a status from 400 to 599")
        if not isinstance(message, str):
            cure = "for a body of your own, write `return Response(json=..., status=...)`"
            raise TypeError(f"HttpError(status, message): the message is {kind_of(message)}, not text; {cure}")
        super().__init__(status, message)
        self.status = int(status)
        self.message = message
        self.issues = issues

    def __str__(self) -> str:
        return f"{self.status} {self.message}".rstrip()


# The name in tracebacks, and for pickle.
HttpError.__module__ = "banana_serve"


def is_error_status(status: object) -> bool:
    """Whether an app may refuse a call with it."""
    return isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599
