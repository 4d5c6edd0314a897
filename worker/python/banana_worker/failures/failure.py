"""Turns an exception that the app raised or returned into the error that ends its call. With an `HttpError` the app chooses
status and message."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, cast

from banana_worker.failures.app_function import traceback_or_place
from banana_worker.failures.invalid_input import inputs_of, invalid_input_of, issues_within
from banana_worker.failures.outlook import is_out_of_memory
from banana_worker.failures.sentences import kind_of
from banana_worker.failures.thrown import class_names, is_a, is_whole
from banana_worker.protocol.errors import ServeError


class HttpError(Exception):
    """Raised, or returned, by an app of any kind: the client gets the status and the message, with the code
    `SERVE_HTTP_ERROR`. Raised for a batch, it is the answer of each of its calls."""

    def __init__(self, status: int, message: str = "", *, issues: Sequence[Tuple[Sequence[object], str]] = ()) -> None:
        """`status`: 400 to 599. `issues`: path and message of each wrong value in the input, which the client gets in a
        list. @raises ValueError for another number; TypeError for a message that is not text"""
        if not is_whole(status, 400, 599):
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


def failure_of(thrown: BaseException, function: Any = None, input: Any = None) -> ServeError:
    """`function`: the function of the app that was called; `input`: what it got. Never raises, whatever the app has
    raised."""
    if is_a(thrown, ServeError):
        return cast(ServeError, thrown)
    detail = traceback_or_place(thrown, function)
    for_client = _failure_for_client(thrown, detail) or invalid_input_of(thrown, inputs_of(input))
    if for_client is not None:
        return for_client
    kind = "out-of-memory" if is_out_of_memory(thrown) else "exception"
    return ServeError("SERVE_INFERENCE_FAILED", detail=detail, kind=kind)


def _failure_for_client(thrown: BaseException, detail: str) -> Optional[ServeError]:
    """The failure with the status and the message that the app wrote for its client; None for other exceptions."""
    try:
        if is_a(thrown, HttpError):
            return _http_failure(cast(HttpError, thrown), detail)
        # Compares names, because an app may bring the class of another package, and most apps do not need `mms` at all.
        return _prediction_failure(thrown, detail) if "PredictionException" in class_names(thrown) else None
    except BaseException:
        return None  # a class of another package whose message cannot be read: it counts as any other exception


def _http_failure(thrown: HttpError, detail: str) -> Optional[ServeError]:
    """None if the app has changed the status to one that is not an error's."""
    if not is_whole(thrown.status, 400, 599):
        return None
    message, issues = str.__str__(thrown.message), issues_within(thrown.issues)
    return ServeError("SERVE_HTTP_ERROR", message, detail, int(thrown.status), issues=issues)


def _prediction_failure(thrown: BaseException, detail: str) -> ServeError:
    """Keeps the message, which the app has written for its client. Raises if reading the exception's attributes
    does."""
    code = getattr(thrown, "error_code", 500)
    status = int(code) if is_whole(code, 400, 599) else 500
    message = str.__str__(str(getattr(thrown, "message", "") or thrown))
    return ServeError("SERVE_INFERENCE_FAILED", message, detail, status, "prediction")
