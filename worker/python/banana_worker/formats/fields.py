"""Collects named values of a form into one dict."""

from __future__ import annotations

from typing import Dict, Iterable, List, Tuple, TypeVar, Union

Value = TypeVar("Value")


def collect_fields(pairs: Iterable[Tuple[str, Value]]) -> Dict[str, Union[Value, List[Value]]]:
    """Collects the pairs; a repeated name gets a list of its values, in order."""
    lists: Dict[str, List[Value]] = {}
    for name, value in pairs:
        lists.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in lists.items()}
