"""Matches the output of a batch function with its calls."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple, TypeVar

from banana_worker.failures.sentences import kind_of
from banana_worker.protocol.errors import output_invalid

Item = TypeVar("Item")


def entries_of(returned: Any, calls: int) -> List[Any]:
    """A copy of the entries, one per call, in the order of the calls. Any type with a length and an order counts,
    such as an array or a tensor. @raises ServeError SERVE_OUTPUT_INVALID with the number of entries found and
    expected"""
    count = _count_of(returned)
    entries = _listed(returned) if count == calls else None
    if entries is not None:
        return entries
    given = kind_of(returned) if count is None or count == calls else _counted(count, "entry", "entries")
    returned_for = "The model's batch function returned %s for %s" % (given, _counted(calls, "call", "calls"))
    raise output_invalid(returned_for + "; it must return a list with one entry per call, in the same order.")


def _count_of(returned: Any) -> Optional[int]:
    """The number of entries; None if the value has no entries."""
    is_text = isinstance(returned, (str, bytes, bytearray, memoryview, dict))
    if is_text or not hasattr(returned, "__len__") or not hasattr(returned, "__getitem__"):
        return None
    try:
        return len(returned)
    except Exception:
        return None


def _listed(returned: Any) -> Optional[List[Any]]:
    """Called only for the right number of entries: an array of a wrong shape may have a hundred million."""
    if isinstance(returned, (list, tuple)):
        return list(returned)
    try:
        return [returned[at] for at in range(len(returned))]
    except Exception:
        return None


def only_entry(returned: Any) -> Any:
    """The entry of a batch of one. @raises ServeError SERVE_OUTPUT_INVALID if there is any other number of entries"""
    return entries_of(returned, 1)[0]


def _counted(count: int, one: str, many: str) -> str:
    return "%d %s" % (count, one if count == 1 else many)


def halves_of(items: List[Item]) -> Tuple[List[Item], List[Item]]:
    """Two parts as equal as possible, so ceil(log2 n) halvings leave each item alone. `items`: two or more."""
    middle = (len(items) + 1) // 2
    return items[:middle], items[middle:]
