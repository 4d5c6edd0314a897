"""The error of an input that pydantic refuses: by the type that the app declares, or in the app's code, which has let the
ValidationError through. An app may also check its model's output so; then the wrong values are not in the input."""

from __future__ import annotations

from itertools import islice
from typing import Any, Iterable, List, Optional, Sequence, Tuple

from banana_worker.failures.thrown import class_name, class_package
from banana_worker.protocol.errors import ServeError

# Bounds of an answer: a list of a million wrong items has as many issues.
_MOST_ISSUES = 100
_MOST_CHARS = 500
_MOST_PARTS = 10
_MOST_PART_CHARS = 100


# Keys and indexes, from the input down to the wrong value; and the message.
Issue = Tuple[List[object], str]


def invalid_input_of(thrown: BaseException, inputs: Iterable[Any]) -> Optional[ServeError]:
    """The failure with the first issues, if one of the inputs holds every wrong value at its place; else None. `inputs`:
    the call's input, and values of it that an app may check alone. Never raises."""
    if class_name(thrown) != "ValidationError" or class_package(thrown) != "pydantic_core":
        return None
    try:
        errors: List[Any] = thrown.errors(include_url=False, include_context=False)  # type: ignore[attr-defined]
        if not errors or not any(all(_holds(value, one) for one in errors) for value in inputs):
            return None
        return input_invalid([(one["loc"], one["msg"]) for one in errors])
    except BaseException:
        return None  # an input whose comparison raises: the error counts as any other exception


def issues_of(thrown: Any) -> List[Tuple[Sequence[object], str]]:
    """All issues of a ValidationError of pydantic, whatever their number and size."""
    errors = thrown.errors(include_url=False, include_context=False, include_input=False)
    return [(one["loc"], one["msg"]) for one in errors]


def input_invalid(issues: Sequence[Tuple[Sequence[object], str]]) -> ServeError:
    """The error of a call whose input has these issues, with the first ones."""
    message = f"The input is invalid: {sentence_of(issues)}."
    return ServeError("SERVE_INPUT_INVALID", message, issues=issues_within(issues))


def issues_within(issues: Iterable[Tuple[Sequence[object], str]]) -> List[Issue]:
    """The first issues, cut to what an answer may hold."""
    return [_issue_of(path, text) for path, text in islice(issues, _MOST_ISSUES)]


def sentence_of(issues: Sequence[Tuple[Sequence[object], str]]) -> str:
    """The first issues in one sentence, for clients that get no list."""
    named = ["%s: %s" % (".".join(map(str, path)) or "the value", text) for path, text in issues_within(issues[:3])]
    return "; ".join(named) + (" (and %d more)" % (len(issues) - 3) if len(issues) > 3 else "")


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


def _issue_of(path: Sequence[object], text: str) -> Issue:
    parts: List[object] = [part if type(part) is int else str(part)[:_MOST_PART_CHARS] for part in path[:_MOST_PARTS]]
    return parts, str(text)[:_MOST_CHARS]


def inputs_of(value: Any) -> List[Any]:
    """The values that an app may check: the whole input, and each field of a custom service's item."""
    item = getattr(value, "item", None)
    return [value] if not isinstance(item, dict) else [item, *item.values()]
