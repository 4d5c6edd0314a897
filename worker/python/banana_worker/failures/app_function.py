"""Names a function of the app when an exception has no line of it: the function cannot be called, or returned a
wrong value."""

from __future__ import annotations

import os
from typing import Any, Optional

from banana_worker.failures.stack_frame import OWN_FOLDER, is_own, places_in, traceback_without_own_frames
from banana_worker.failures.thrown import described

# The code between the worker and the app's functions.
_BETWEEN = os.path.join(OWN_FOLDER, "banana_worker", "adapters") + os.sep


class WrongFunction(TypeError):
    """A function of the app that the worker cannot call. `place` is its first line; None if that is unknown."""

    def __init__(self, function: Any, problem: str) -> None:
        super().__init__(problem)
        self.place = place_of(function)


def place_of(function: Any) -> Optional[str]:
    """`file:line` of the beginning of the function, or of a method of the class; None if Python does not know. Never
    raises."""
    try:
        return _place_of(function)
    except Exception:
        return None  # a callable object of the app whose attributes raise


def _place_of(function: Any) -> Optional[str]:
    if isinstance(function, type):
        function = vars(function).get("__init__") or vars(function).get("handle")
    for _ in range(_MOST_WRAPPERS):
        inner = next((getattr(function, name) for name in _WRAPPED if hasattr(function, name)), None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return None if code is None else "%s:%d" % (code.co_filename, code.co_firstlineno)


# Attributes of decorated functions, methods and partials.
_WRAPPED = ("__wrapped__", "__func__", "func")

# A mock has every attribute, so the chain of wrappers has no end.
_MOST_WRAPPERS = 100


def failed_outside(thrown: BaseException) -> bool:
    """Whether no line of the app failed, but the call of its function, or our use of its return value."""
    places = places_in(thrown)
    is_at_border = bool(places) and places[-1].file.startswith(_BETWEEN)
    return is_at_border and all(is_own(place.file) for place in places)


def traceback_or_place(thrown: BaseException, function: Any) -> str:
    """The traceback without our frames. If no other frame is left, the beginning of the app's function instead.
    Never raises."""
    place = place_of(function) if failed_outside(thrown) else None
    if place is None:
        return traceback_without_own_frames(thrown)
    return "%s: %s" % (place, described(thrown))
