"""What became of a call whose app raised, or gave an exception in place of an answer."""

from __future__ import annotations

from banana_worker.errors import ServeError
from banana_worker.outlook import is_out_of_memory
from banana_worker.stack_frame import traceback_without_own_frames


def failure_of(thrown: BaseException) -> ServeError:
    """Never raises: anything may be raised by an app."""
    if isinstance(thrown, ServeError):
        return thrown
    detail = traceback_without_own_frames(thrown)
    if _is_prediction(thrown):
        try:
            return _prediction_failure(thrown, detail)
        except Exception:
            pass  # the class of another package that cannot say its message: it counts as any other exception
    kind = "out-of-memory" if is_out_of_memory(thrown) else "exception"
    return ServeError("SERVE_INFERENCE_FAILED", detail=detail, kind=kind)


def _is_prediction(thrown: BaseException) -> bool:
    """By its name: an app may bring the class of another package, and most apps need no `mms` at all."""
    return any(base.__name__ == "PredictionException" for base in type(thrown).__mro__)


def _prediction_failure(thrown: BaseException, detail: str) -> ServeError:
    """The app has written the message for its client."""
    code = getattr(thrown, "error_code", 500)
    status = code if isinstance(code, int) and 400 <= code <= 599 else 500
    message = str(getattr(thrown, "message", "") or thrown)
    return ServeError("SERVE_INFERENCE_FAILED", message, detail, status, "prediction")
