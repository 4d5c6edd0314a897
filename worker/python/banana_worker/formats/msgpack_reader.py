"""Reads one MessagePack value. Every length is checked before memory is taken for it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from struct import Struct
from typing import Dict, List, Tuple

# Deeper values would come near the recursion limit of Python: each level takes four frames of 1000.
MAX_DEPTH = 128

# Python places a text in a dict by a secret hash of the process, but a number by its value, so a client can choose
# numbers that all collide. The time grows with the square of their count, and is 8 s for so many.
MAX_NUMBER_KEYS = 100_000

# Number keys of smaller maps take little time even if they collide, and do not count.
_LARGE_MAP = 1000

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

Read = Tuple[object, int]


def read_value(data: bytes) -> object:
    """The one value that `data` contains. @raises ValueError if it is empty, contains more, or is not MessagePack"""
    value, end = _Reader(data).value(0, 0)
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes follow the value")
    return value


class _Reader:
    """Each method takes the place where it begins to read, and returns the value and the place behind it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        # Number keys that the large maps may still have, all together.
        self.number_keys_left = MAX_NUMBER_KEYS

    def value(self, at: int, depth: int) -> Read:
        self.need(at, 1)
        first = self.data[at]
        at += 1
        if first < 0x80:
            return first, at
        if first >= 0xE0:
            return first - 0x100, at
        if first < 0x90:
            return self.map(first & 0x0F, at, depth)
        if first < 0xA0:
            return self.array(first & 0x0F, at, depth)
        if first < 0xC0:
            return self.text(first & 0x1F, at)
        return self.marked(first, at, depth)

    def marked(self, first: int, at: int, depth: int) -> Read:
        if first in _CONSTANTS:
            return _CONSTANTS[first], at
        if first in _NUMBERS:
            return self.number(_NUMBERS[first], at)
        if first in _SIZED:
            struct, kind = _SIZED[first]
            size, at = self.number(struct, at)
            return self.sized(kind, size, at, depth)
        if first in _FIXED_EXTENSIONS:
            return self.extension(_FIXED_EXTENSIONS[first], at)
        raise ValueError(f"byte 0x{first:02x} is never used")

    def sized(self, kind: str, size: int, at: int, depth: int) -> Read:
        if kind == "text":
            return self.text(size, at)
        if kind == "bytes":
            self.need(at, size)
            return self.data[at : at + size], at + size
        if kind == "array":
            return self.array(size, at, depth)
        return self.map(size, at, depth) if kind == "map" else self.extension(size, at)

    def need(self, at: int, size: int) -> None:
        if size > len(self.data) - at:
            raise ValueError("it ends inside a value")

    def number(self, struct: Struct, at: int) -> Tuple[int, int]:
        self.need(at, struct.size)
        return struct.unpack_from(self.data, at)[0], at + struct.size

    def text(self, size: int, at: int) -> Read:
        self.need(at, size)
        try:
            return self.data[at : at + size].decode("utf-8"), at + size
        except UnicodeDecodeError:
            return self.data[at : at + size].decode("utf-8", "replace"), at + size

    def array(self, size: int, at: int, depth: int) -> Read:
        self.need(at, size)
        self.check_depth(depth)
        items: List[object] = []
        for _ in range(size):
            item, at = self.value(at, depth + 1)
            items.append(item)
        return items, at

    def map(self, size: int, at: int, depth: int) -> Read:
        self.need(at, 2 * size)
        self.check_depth(depth)
        entries: Dict[object, object] = {}
        for _ in range(size):
            key, at = self.value(at, depth + 1)
            if isinstance(key, (list, dict, bytes, datetime)):
                raise ValueError("a key of a map is a list, a map, bytes or a timestamp")
            # Before Python 3.10 all NaN keys of a dict collide, and none is found again.
            if key != key:
                raise ValueError("a key of a map is not a number (NaN)")
            if size > _LARGE_MAP and not isinstance(key, str):
                self.count_number_key()
            entries[key], at = self.value(at, depth + 1)
        return entries, at

    def count_number_key(self) -> None:
        self.number_keys_left -= 1
        if self.number_keys_left < 0:
            raise ValueError(f"maps of more than {_LARGE_MAP} keys have more than {MAX_NUMBER_KEYS} numbers as keys")

    def check_depth(self, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")

    def extension(self, size: int, at: int) -> Read:
        self.need(at, size + 1)
        kind = self.data[at]
        if kind != _TIMESTAMP:
            raise ValueError(f"extension type {kind - 0x100 if kind > 0x7F else kind} is not supported")
        return _timestamp(self.data[at + 1 : at + 1 + size]), at + 1 + size


_TIMESTAMP = 0xFF

_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}

_NUMBERS = {
    first: Struct(form)
    for first, form in zip(range(0xCA, 0xD4), (">f", ">d", ">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q"))
}

# A byte for each size of the length behind it.
_SIZED = {
    first + at: (Struct(form), kind)
    for first, kind, forms in (
        (0xC4, "bytes", (">B", ">H", ">I")),
        (0xC7, "extension", (">B", ">H", ">I")),
        (0xD9, "text", (">B", ">H", ">I")),
        (0xDC, "array", (">H", ">I")),
        (0xDE, "map", (">H", ">I")),
    )
    for at, form in enumerate(forms)
}

_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


def _timestamp(data: bytes) -> datetime:
    nanoseconds, seconds = _timestamp_parts(data)
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    except OverflowError:
        raise ValueError("a timestamp lies outside the years 1 to 9999") from None


def _timestamp_parts(data: bytes) -> Tuple[int, int]:
    if len(data) == 4:
        return 0, int.from_bytes(data, "big")
    if len(data) == 8:
        both = int.from_bytes(data, "big")
        return both >> 34, both & 0x3FFFFFFFF
    if len(data) == 12:
        return int.from_bytes(data[:4], "big"), int.from_bytes(data[4:], "big", signed=True)
    raise ValueError(f"a timestamp has {len(data)} bytes")
