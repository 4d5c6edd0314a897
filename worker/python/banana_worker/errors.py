"""The one error of the worker, and the text of anything that an app may raise."""

from __future__ import annotations

from typing import Dict, Tuple

from banana_worker.stack_frame import plain_traceback
from banana_worker.standard_modules import import_standard
from banana_worker.thrown import class_name, text_of, traceback_of

# Safe for a client: they say what happened without a secret, a path or a traceback. As in protocol/errors.ts.
MESSAGES: Dict[str, str] = {
    "SERVE_BAD_BODY": "The request body could not be read.",
    "SERVE_INFERENCE_FAILED": "The model failed on this call.",
    "SERVE_OUTPUT_INVALID": "The model's output could not be encoded.",
    "SERVE_OUTPUT_TOO_LARGE": "The model's output is larger than allowed.",
    "SERVE_CANCELLED": "The client left.",
    "SERVE_WORKER_LOST": "The worker died while running this call.",
    "SERVE_PROTOCOL": "A worker broke the protocol.",
    "SERVE_INTERNAL": "The server failed on this request.",
    "SERVE_APP_INVALID": "The app cannot be loaded.",
    "SERVE_INIT_FAILED": "The app's init failed.",
}


class ServeError(Exception):
    """A failure that the front knows by its code.

    `message` is safe to show a client; `detail` is for the log alone. `status` is an HTTP status of the app's choosing,
    400 to 599, or 0: the one that belongs to the code. `kind` is one of docs/wire.md, or empty.
    """

    def __init__(self, code: str, message: str = "", detail: str = "", status: int = 0, kind: str = "") -> None:
        super().__init__(message or MESSAGES.get(code, code))
        self.code = code
        self.message = message or MESSAGES.get(code, code)
        self.detail = detail
        self.status = status
        self.kind = kind


class ProtocolError(ServeError):
    """The front sent what the wire does not allow; `detail` says what, for the log."""

    def __init__(self, detail: str) -> None:
        super().__init__("SERVE_PROTOCOL", detail=detail)


def describe_thrown(thrown: BaseException) -> Tuple[str, str]:
    """The message and the whole traceback of anything an app may raise, causes included. Never raises."""
    return _message_of(thrown), _traceback_of(thrown)


def _message_of(thrown: BaseException) -> str:
    text = text_of(thrown)
    return "an exception that cannot be shown" if text is None else text or class_name(thrown)


def _traceback_of(thrown: BaseException) -> str:
    try:
        traceback = import_standard("traceback")
        return "".join(traceback.format_exception(type(thrown), thrown, traceback_of(thrown))).rstrip("\n")
    except BaseException:
        return plain_traceback(thrown)
