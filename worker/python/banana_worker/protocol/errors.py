"""The one error of the worker."""

from __future__ import annotations

from typing import Sequence, Tuple

from banana_worker.protocol.tables import MESSAGES


class ServeError(Exception):
    """A failure that the front knows by its code.

    `message` is safe to show a client; `detail` is for the log alone. `status` is an HTTP status that the app chose,
    400 to 599, or 0 for the one of the code. `kind` is one of docs/wire.md, or empty. `issues`: path and message of
    each wrong value in the input.
    """

    def __init__(
        self,
        code: str,
        message: str = "",
        detail: str = "",
        status: int = 0,
        kind: str = "",
        issues: Sequence[Tuple[Sequence[object], str]] = (),
    ) -> None:
        super().__init__(message or MESSAGES.get(code, code))
        self.code = code
        self.message = message or MESSAGES.get(code, code)
        self.detail = detail
        self.status = status
        self.kind = kind
        self.issues = issues


class ProtocolError(ServeError):
    """The front sent something that the wire does not allow; `detail` describes it for the log."""

    def __init__(self, detail: str) -> None:
        super().__init__("SERVE_PROTOCOL", detail=detail)


def bad_body(message: str) -> ServeError:
    """The body of the request is wrong."""
    return ServeError("SERVE_BAD_BODY", message)


def output_invalid(message: str) -> ServeError:
    """The app returned what cannot be its answer."""
    return ServeError("SERVE_OUTPUT_INVALID", message)


def refusal(message: str) -> ServeError:
    """400: the app cannot be called in this way."""
    return ServeError("SERVE_HTTP_ERROR", message, status=400)
