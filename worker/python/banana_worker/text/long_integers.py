"""Whole numbers of more digits than Python reads or writes in one go.

The time that one takes grows faster than its digits, so all of a body, or of an output, have one allowance together.
"""

from __future__ import annotations

import sys

# Those of fewer digits are read and written at once, and count for nothing. It is Python's own limit as a rule.
LONG_DIGITS = 4300

# All long ones together may have so many: 0.03 s to read, and before Python 3.12 0.2 s to write.
MAX_DIGITS = 100_000

# A text of so many digits is read at once by every interpreter.
_DIGITS_AT_ONCE = 512

_DIGITS_PER_BIT = 0.30102999566398120


def is_refused_by_int() -> bool:
    """Whether `int` refuses long whole numbers: in releases before 2022-09, or if the app has said so, it does not."""
    limit = getattr(sys, "get_int_max_str_digits", None)
    return limit is not None and 0 < limit() <= LONG_DIGITS


class LongIntegers:
    """Those of one body or one output."""

    def __init__(self) -> None:
        self._left = MAX_DIGITS

    def read(self, text: str) -> int:
        """The number that `text` holds, exactly. @raises ValueError if those read so far have too many digits together"""
        if len(text) <= _DIGITS_AT_ONCE:
            return int(text)
        digits = text[1:] if text.startswith("-") else text
        if not self.admits(len(digits)):
            raise ValueError(f"its {TOO_MANY}")
        return -_read_digits(digits) if text.startswith("-") else _read_digits(digits)

    def admits(self, digits: int) -> bool:
        """Counts a number of so many digits; false once there are too many together."""
        if digits > LONG_DIGITS:
            self._left -= digits
        return self._left >= 0


TOO_MANY = f"whole numbers of more than {LONG_DIGITS} digits have more than {MAX_DIGITS} digits together"


def digits_of(value: int) -> int:
    """How many digits the number has, or one less."""
    return int(value.bit_length() * _DIGITS_PER_BIT)


def _read_digits(digits: str) -> int:
    if len(digits) <= _DIGITS_AT_ONCE:
        return int(digits)
    low = len(digits) // 2
    return _read_digits(digits[:-low]) * 10**low + _read_digits(digits[-low:])
