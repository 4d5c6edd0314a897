"""Recognises features that this Python is too old for in the exceptions that they cause."""

from __future__ import annotations

import re
import sys
from typing import NamedTuple, Tuple

from banana_worker.failures.thrown import is_a, text_of

Version = Tuple[int, int]

# Modules that came with a version after the first that a worker runs on.
_MODULES = {"zoneinfo": (3, 9), "graphlib": (3, 9), "tomllib": (3, 11)}

# Characters of a message, or of a line, that are searched: some patterns take more than linear time.
_MOST_CHARS = 300


class _Feature(NamedTuple):
    name: str
    since: Version
    # Searched for in the message of a TypeError, or in the line of a SyntaxError.
    pattern: str


_TYPES = (
    _Feature("A `|` of dicts", (3, 9), r"for \|=?: 'dict' and 'dict'"),
    _Feature("A type such as `list[int]`", (3, 9), r"^'(type|ABCMeta)' object is not subscriptable"),
    _Feature("A type such as `int | None`", (3, 10), r"for \|: .*'(type|NoneType|\S*(Alias|Meta|Form))'"),
)
_SYNTAX = (
    _Feature("A `match`", (3, 10), r"^\s*(match|case)\b.*:\s*(#.*)?$"),
    _Feature("An `except*`", (3, 11), r"^\s*except\s*\*"),
    _Feature("A `type` statement", (3, 12), r"^\s*type\s+\w+.*="),
    _Feature("A definition with type parameters", (3, 12), r"^\s*((async\s+)?def|class)\s+\w+\["),
)


def newer_python_hint(thrown: BaseException) -> str:
    """A sentence with the Python version that is needed; empty if this one is not known to be too old."""
    if not is_a(thrown, ModuleNotFoundError, TypeError, SyntaxError):
        return ""
    if isinstance(thrown, ModuleNotFoundError):
        name = thrown.name or ""
        since = _MODULES.get(name)
        return _needs(f"The module {name}", since) if since and sys.version_info < since else ""
    features, text = _TYPES, text_of(thrown) or "" if type(thrown) is TypeError else ""
    if isinstance(thrown, SyntaxError):
        features, text = _SYNTAX, thrown.text or ""
    for feature in features:
        if sys.version_info < feature.since and re.search(feature.pattern, text[:_MOST_CHARS]):
            return _needs(feature.name, feature.since)
    return ""


def _needs(what: str, since: Version) -> str:
    this = "%d.%d.%d" % sys.version_info[:3]
    return f"{what} needs Python {since[0]}.{since[1]} or newer; this is {this} ({sys.executable}). Name another with --python."
