"""Checks a metric of an app: Prometheus has rules for names and labels, and some are the server's own."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Dict, Mapping

_MOST_METRICS = 100
_MOST_LABELS = 10
_MOST_CHARS = 256

# Labels that the server adds, or that belong to a kind.
_TAKEN_LABELS = ("model", "version", "worker", "le", "quantile")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")


def check_metric(kind: str, name: Any, value: Any, labels: Mapping[str, Any], kinds: Dict[str, str]) -> None:
    """`kinds`: the kinds of the metrics so far, by name. @raises TypeError, ValueError"""
    known = kinds.get(name) if isinstance(name, str) else None
    if known is None:
        problem = _name_problem(name)
        if problem:
            raise TypeError("metric %s: %s" % (_shown(name), problem))
        if len(kinds) >= _MOST_METRICS:
            text = "metric %s: an app may have %d metrics; use labels for values that differ from call to call"
            raise ValueError(text % (_shown(name), _MOST_METRICS))
    elif known != kind:
        raise TypeError("metric %s: it is a %s, not a %s; use another name" % (_shown(name), known, kind))
    if not is_finite(value):
        raise TypeError("metric %s: its value is not a finite number, but %s" % (_shown(name), _shown(value)))
    if kind == "counter" and value < 0:
        raise ValueError("metric %s: a counter cannot fall: %s is below 0" % (_shown(name), value))
    problem = _labels_problem(labels)
    if problem:
        raise TypeError("metric %s: %s" % (_shown(name), problem))


def number_of(value: Any) -> Any:
    """A number of another type, such as numpy's, as a Python number; any other value unchanged."""
    if isinstance(value, (int, str, bytes)):
        return value
    try:
        return float(value)
    except Exception:
        return value


def is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False  # a whole number too large for a float


def _name_problem(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.match(name) or len(name) > _MOST_CHARS:
        return "a name may have up to %d letters, digits and underscores, and must not begin with a digit" % _MOST_CHARS
    if name.startswith(("banana_", "__")):
        return "names that begin with banana_ or __ are reserved"
    if name.endswith(("_bucket", "_sum", "_count")):
        return "names that end in _bucket, _sum or _count are reserved for histograms"
    return ""


def _labels_problem(labels: Any) -> str:
    if not isinstance(labels, Mapping):
        return 'its labels must be a dict such as {"language": "en"}'
    if len(labels) > _MOST_LABELS:
        return "it has %d labels; %d are allowed" % (len(labels), _MOST_LABELS)
    for label, text in labels.items():
        problem = _label_problem(label, text)
        if problem:
            return problem
    return ""


def _label_problem(label: Any, text: Any) -> str:
    if not isinstance(label, str) or not _NAME.match(label) or label.startswith("__") or len(label) > _MOST_CHARS:
        return (
            "%s is not a valid label: use letters, digits and underscores, beginning with neither a digit nor __"
            % _shown(label)
        )
    if label in _TAKEN_LABELS:
        return "the label %s is reserved for the server" % _shown(label)
    if not isinstance(text, (str, int, float, bool)):
        return "the value of the label %s must be text, a number or a boolean" % _shown(label)
    if len(str(text)) > _MOST_CHARS or "\n" in str(text) or "\r" in str(text):
        return "the value of the label %s must be one line of up to %d characters" % (_shown(label), _MOST_CHARS)
    return ""


def _shown(value: Any) -> str:
    return json.dumps(value[:100]) if isinstance(value, str) else repr(value)
