"""Bounds for JSON of a client that takes more time, or more of the stack, than its size lets expect: whole numbers of more
digits than Python reads or writes at once, and deep nesting.

The time for one number grows faster than its digits, so all of a body, or of an output, share one allowance. Python's decoder,
written in C, has no other bound of the depth before Python 3.12 than the recursion limit."""

from __future__ import annotations

import re
import sys
from typing import List

# Numbers of fewer digits are read and written at once, and do not count. By default it is Python's own limit.
LONG_DIGITS = 4300

# Allowed digits of all long numbers together: 0.03 s to read, and before Python 3.12 0.2 s to write.
MAX_DIGITS = 100_000

# Every interpreter reads a text of so many digits at once.
_DIGITS_AT_ONCE = 512

_DIGITS_PER_BIT = 0.30102999566398120


def is_refused_by_int() -> bool:
    """Whether `int` refuses long whole numbers. False in releases before 2022-09, or if the app has lifted the
    limit."""
    limit = getattr(sys, "get_int_max_str_digits", None)
    return limit is not None and 0 < limit() <= LONG_DIGITS


class LongIntegers:
    """The long numbers of one body or one output."""

    def __init__(self) -> None:
        self._left = MAX_DIGITS

    def read(self, text: str) -> int:
        """The number that `text` holds, exactly. @raises ValueError if the long numbers so far have too many digits
        together"""
        if len(text) <= _DIGITS_AT_ONCE:
            return int(text)
        digits = text[1:] if text.startswith("-") else text
        if not self.admits(len(digits)):
            raise ValueError(f"its {TOO_MANY}")
        return -_read_digits(digits) if text.startswith("-") else _read_digits(digits)

    def admits(self, digits: int) -> bool:
        """Counts a number of so many digits; False once there are too many together."""
        if digits > LONG_DIGITS:
            self._left -= digits
        return self._left >= 0


TOO_MANY = f"whole numbers of more than {LONG_DIGITS} digits have more than {MAX_DIGITS} digits together"


def digits_of(value: int) -> int:
    """The number of digits, or one less."""
    return int(value.bit_length() * _DIGITS_PER_BIT)


def _read_digits(digits: str) -> int:
    if len(digits) <= _DIGITS_AT_ONCE:
        return int(digits)
    low = len(digits) // 2
    return _read_digits(digits[:-low]) * 10**low + _read_digits(digits[-low:])


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
