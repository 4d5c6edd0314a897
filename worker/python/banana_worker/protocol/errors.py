"""The one error of the worker, with its codes and their messages."""

from __future__ import annotations

from typing import Dict, Sequence, Tuple

# Safe for a client: no secret, path or traceback is in them. As in protocol/errors.ts.
MESSAGES: Dict[str, str] = {
    "SERVE_BAD_BODY": "The request body could not be read.",
    "SERVE_INFERENCE_FAILED": "The model failed on this call.",
    "SERVE_HTTP_ERROR": "The app refused this call.",
    "SERVE_OUTPUT_INVALID": "The model's output could not be encoded.",
    "SERVE_OUTPUT_TOO_LARGE": "The model's output is larger than allowed.",
    "SERVE_CANCELLED": "The client disconnected.",
    "SERVE_WORKER_LOST": "The worker died while running this call.",
    "SERVE_PROTOCOL": "A worker broke the protocol.",
    "SERVE_INTERNAL": "The server failed on this request.",
    "SERVE_APP_INVALID": "The app cannot be loaded.",
    "SERVE_INIT_FAILED": "The app's init failed.",
}

# Codes with which a call ends; the front takes any other for the model's failure. As in protocol/errors.ts.
CALL_ERRORS = frozenset(
    (
        "SERVE_BAD_BODY",
        "SERVE_INFERENCE_FAILED",
        "SERVE_HTTP_ERROR",
        "SERVE_OUTPUT_INVALID",
        "SERVE_OUTPUT_TOO_LARGE",
        "SERVE_CANCELLED",
    )
)


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
