"""`application/x-www-form-urlencoded` bodies, for apps that ask for them; others get such bodies read as JSON."""

from __future__ import annotations

from typing import Dict, Iterable, List, Tuple, TypeVar, Union
from urllib.parse import unquote_to_bytes

from banana_worker.protocol.messages import Call

ITEM_TYPE = "application/x-www-form-urlencoded"

Value = TypeVar("Value")


def read(body: bytes, call: Call) -> Dict[str, Union[str, List[str]]]:
    """Every value is text; a repeated name gets a list. Broken percent escapes stay as they are."""
    return collect_fields((name, value.decode("utf-8", "replace")) for name, value in form_pairs(body))


def collect_fields(pairs: Iterable[Tuple[str, Value]]) -> Dict[str, Union[Value, List[Value]]]:
    """The named values of any kind of form in one dict; a repeated name gets a list of its values, in order."""
    lists: Dict[str, List[Value]] = {}
    for name, value in pairs:
        lists.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in lists.items()}


def form_pairs(text: bytes) -> List[Tuple[str, bytes]]:
    """Every pair in order; values are decoded to bytes. Broken percent escapes stay as they are."""
    return [_read_pair(pair) for pair in text.split(b"&") if pair]


def _read_pair(pair: bytes) -> Tuple[str, bytes]:
    name, _, value = pair.partition(b"=")
    return _decoded(name).decode("utf-8", "replace"), _decoded(value)


def _decoded(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" "))
