"""Recognises pydantic's ValidationError about the input of a call, which the app has let through: the client's mistake.
An app may also check the output of its model with pydantic; then the wrong values are not in the input."""

from __future__ import annotations

from typing import Any, Iterable, List, Optional, Tuple

from banana_worker.failures.thrown import class_name, class_package
from banana_worker.protocol.errors import ServeError

# Bounds of an answer: a list of a million wrong items has as many issues.
_MOST_ISSUES = 20
_MOST_PARTS = 10
_MOST_CHARS = 100


# Keys and indexes, from the input down to the wrong value; and the message.
Issue = Tuple[List[object], str]


def invalid_input_of(thrown: BaseException, inputs: Iterable[Any], detail: str) -> Optional[ServeError]:
    """The failure with the first issues, if one of the inputs holds every wrong value at its place; else None. `inputs`:
    the call's input, and values of it that an app may check alone. Never raises."""
    if class_name(thrown) != "ValidationError" or class_package(thrown) != "pydantic_core":
        return None
    try:
        errors: List[Any] = thrown.errors(include_url=False, include_context=False)  # type: ignore[attr-defined]
        if not errors or not any(all(_holds(value, one) for one in errors) for value in inputs):
            return None
        issues = [_issue_of(one) for one in errors[:_MOST_ISSUES]]
        message = _message_of(issues[:3], len(errors))
        return ServeError("SERVE_HTTP_ERROR", message, detail, 422, issues=issues)
    except BaseException:
        return None  # an input whose comparison raises: the error counts as any other exception


def _message_of(first: List[Issue], count: int) -> str:
    """One sentence for clients that get no list."""
    named = ["%s: %s" % (".".join(map(str, path)) or "the input", text) for path, text in first]
    more = "" if count == len(first) else " (and %d more)" % (count - len(first))
    return "The input is invalid: %s%s." % ("; ".join(named), more)


def _holds(value: Any, error: Any) -> bool:
    """Whether the input has the wrong value at the place of the error."""
    at, found = _walk(value, error["loc"])
    if error["loc"] and not found and not (error["type"] == "missing" and isinstance(at, dict)):
        return False  # else any place would fit an input that is the wrong value, such as null
    wrong = error["input"]
    return at is wrong or (type(at) is type(wrong) and bool(at == wrong))


def _walk(value: Any, loc: Tuple[object, ...]) -> Tuple[Any, int]:
    """The value at the place, and how many parts of it were found. Some are no keys: the name of a missing field, of a
    validator, or of the member of a union."""
    found = 0
    for part in loc:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, (list, tuple)) and type(part) is int and 0 <= part < len(value):
            value = value[part]
        else:
            continue
        found += 1
    return value, found


def _issue_of(error: Any) -> Issue:
    path: List[object] = [part if type(part) is int else str(part)[:_MOST_CHARS] for part in error["loc"][:_MOST_PARTS]]
    return path, str(error["msg"])[:_MOST_CHARS]


def inputs_of(value: Any) -> List[Any]:
    """The values that an app may check: the whole input, and each field of a custom service's item."""
    item = getattr(value, "item", None)
    return [value] if not isinstance(item, dict) else [item, *item.values()]
