"""Outputs of a plain app that are answers, but probably not the ones that were meant."""

from __future__ import annotations

from typing import Any

from banana_worker.failures.app_function import place_of
from banana_worker.process.hint_once import hint_once


def hint_at(output: Any, function: Any) -> None:
    """`output`: None or a tuple, returned by `function`."""
    place = place_of(function) or "the app"
    if output is None:
        hint_once(
            "no return",
            f"{place}: the function returned None, so the client gets null: a `return` may be missing.",
        )
    elif _is_body_and_status(output):
        hint_once(
            "body and status",
            f"{place}: the function returned a tuple, so the client gets a list, with status 200. To answer with a "
            f"status, write `from banana_serve import Response` and `return Response(status={output[1]}, json=...)`.",
        )


def _is_body_and_status(output: Any) -> bool:
    """Whether it has the form in which apps of Flask answer with a status: `body, 422`, and perhaps headers."""
    if len(output) not in (2, 3) or not isinstance(output[0], (dict, list, str)):
        return False
    is_status = type(output[1]) is int and 200 <= output[1] <= 599
    return is_status and (len(output) == 2 or isinstance(output[2], dict))
