"""Bounds for JSON that takes more time, or more of the stack, than its size lets expect: whole numbers of thousands of
digits, and deep nesting."""

from __future__ import annotations

import re
import sys
from typing import List

# By default, Python neither reads nor writes whole numbers of more digits: the time grows with the square of their count.
MAX_DIGITS = 4300

_DIGITS_PER_BIT = 0.30102999566398120


def digits_limit() -> int:
    """Python's own limit; 0 in releases before 2022-09, or if the app has lifted it."""
    return getattr(sys, "get_int_max_str_digits", lambda: 0)()


def read_integer(text: str) -> int:
    """`int` where Python has no limit. @raises ValueError"""
    if len(text) > MAX_DIGITS:
        raise ValueError("a number of too many digits")
    return int(text)


def digits_of(value: int) -> int:
    """The number of digits, or one less."""
    return int(value.bit_length() * _DIGITS_PER_BIT)


def is_too_long(value: int) -> bool:
    """Whether Python does not write the number."""
    return 0 < digits_limit() <= digits_of(value)


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
