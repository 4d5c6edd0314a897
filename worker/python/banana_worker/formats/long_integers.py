"""Whole numbers of more digits than Python reads in one go (4300 as a rule)."""

from __future__ import annotations

import sys

# Longer ones would keep a worker busy for seconds each.
MAX_DIGITS = 100_000

# A text of so many digits is read at once by every interpreter.
_DIGITS_AT_ONCE = 512


def has_digit_limit() -> bool:
    """Whether `int` refuses what it would read for long: in releases before 2022-09, or if the app has said so, it does not."""
    limit = getattr(sys, "get_int_max_str_digits", None)
    return limit is not None and limit() > 0


def read_integer(text: str) -> int:
    """The number that `text` holds, exactly. @raises ValueError if it is longer than MAX_DIGITS"""
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a whole number of more than {MAX_DIGITS} digits")
    return -_read_digits(text[1:]) if text.startswith("-") else _read_digits(text)


def _read_digits(digits: str) -> int:
    if len(digits) <= _DIGITS_AT_ONCE:
        return int(digits)
    low = len(digits) // 2
    return _read_digits(digits[:-low]) * 10**low + _read_digits(digits[-low:])
