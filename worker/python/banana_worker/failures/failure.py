"""What became of a call whose app raised, or gave an exception in place of an answer."""

from __future__ import annotations

from typing import Any, cast

from banana_worker.failures.app_function import traceback_or_place
from banana_worker.failures.outlook import is_out_of_memory
from banana_worker.failures.thrown import class_names, is_a
from banana_worker.protocol.errors import ServeError


def failure_of(thrown: BaseException, function: Any = None) -> ServeError:
    """`function`: the app's, which was called. Never raises: anything may be raised by an app."""
    if is_a(thrown, ServeError):
        return cast(ServeError, thrown)
    detail = traceback_or_place(thrown, function)
    if _is_prediction(thrown):
        try:
            return _prediction_failure(thrown, detail)
        except BaseException:
            pass  # the class of another package that cannot say its message: it counts as any other exception
    kind = "out-of-memory" if is_out_of_memory(thrown) else "exception"
    return ServeError("SERVE_INFERENCE_FAILED", detail=detail, kind=kind)


def _is_prediction(thrown: BaseException) -> bool:
    """By its name: an app may bring the class of another package, and most apps need no `mms` at all."""
    return "PredictionException" in class_names(thrown)


def _prediction_failure(thrown: BaseException, detail: str) -> ServeError:
    """The app has written the message for its client. Raises what the exception raises when it is asked."""
    code = getattr(thrown, "error_code", 500)
    status = code if isinstance(code, int) and 400 <= code <= 599 else 500
    message = str.__str__(str(getattr(thrown, "message", "") or thrown))
    return ServeError("SERVE_INFERENCE_FAILED", message, detail, status, "prediction")
