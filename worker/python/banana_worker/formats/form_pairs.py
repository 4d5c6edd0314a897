"""Names and values of `application/x-www-form-urlencoded` text; values are decoded to bytes."""

from __future__ import annotations

import re
from typing import List, Tuple


def form_pairs(text: bytes) -> List[Tuple[str, bytes]]:
    """Every pair in order. Broken percent escapes stay as they are."""
    return [_read_pair(pair) for pair in text.split(b"&") if pair]


def _read_pair(pair: bytes) -> Tuple[str, bytes]:
    name, _, value = pair.partition(b"=")
    return _decoded(name).decode("utf-8", "replace"), _decoded(value)


_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")


def _decoded(text: bytes) -> bytes:
    spaced = text.replace(b"+", b" ")
    if b"%" not in spaced:
        return spaced
    return _ESCAPE.sub(lambda found: bytes((int(found.group(1), 16),)), spaced)
