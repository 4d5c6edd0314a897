"""Limits the depth of JSON. Python's decoder, written in C, has no other bound before Python 3.12 than the recursion
limit."""

from __future__ import annotations

import re
import sys
from typing import List

# If an app has raised the recursion limit, deeper texts are refused as by the limit itself. Each level takes about 150
# bytes of the stack: 80,000 levels, which any client can send, end a process whose stack has 8 MB.
MAX_DEPTH = 10_000

_BRACKET = re.compile(r"[][{}]")


def check_depth(text: str) -> None:
    """@raises RecursionError if the decoder would go too deep"""
    if sys.getrecursionlimit() <= MAX_DEPTH or text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for part in _outside_of_strings(text):
        for bracket in _BRACKET.findall(part):
            depth += 1 if bracket in "[{" else -1
            if depth > MAX_DEPTH:
                raise RecursionError


def _outside_of_strings(text: str) -> List[str]:
    return text.replace("\\\\", "").replace('\\"', "").split('"')[::2]
