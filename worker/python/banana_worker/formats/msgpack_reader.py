"""Reads one MessagePack value. Every length is checked before memory is taken for it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from struct import Struct
from typing import Any, Dict, List, Tuple, Type

# Deeper values would come near the recursion limit of Python: each level takes four frames of 1000.
MAX_DEPTH = 128

# Python places a text in a dict by a secret hash of the process, but a number by its value, so a client can choose
# numbers that all collide. The time grows with the square of their count, and is 8 s for so many.
MAX_NUMBER_KEYS = 100_000

# Number keys of smaller maps take little time even if they collide, and do not count.
_LARGE_MAP = 1000

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        # The place of the next byte to read.
        self.at = 0
        # Number keys that the large maps may still have, all together.
        self.number_keys_left = MAX_NUMBER_KEYS

    def value(self, depth: int) -> object:
        at = self.at
        if at == len(self.data):
            raise _cut_short()
        first = self.data[at]
        self.at = at + 1
        if first < 0x80:
            return first
        if first >= 0xE0:
            return first - 0x100
        if first in _NUMBERS:
            return self.number(_NUMBERS[first])
        if first < 0x90:
            return self.map(first & 0x0F, depth)
        if first < 0xA0:
            return self.array(first & 0x0F, depth)
        if first < 0xC0:
            return self.text(first & 0x1F)
        return self.marked(first, depth)

    def marked(self, first: int, depth: int) -> object:
        if first in _CONSTANTS:
            return _CONSTANTS[first]
        if first in _FIXED_EXTENSIONS:
            return self.extension(_FIXED_EXTENSIONS[first])
        if first not in _SIZED:
            raise ValueError(f"byte 0x{first:02x} is never used")
        struct, kind = _SIZED[first]
        size = self.number(struct)
        if kind == "text":
            return self.text(size)
        if kind == "bytes":
            return self.take(size)
        if kind == "array":
            return self.array(size, depth)
        return self.map(size, depth) if kind == "map" else self.extension(size)

    def take(self, size: int) -> bytes:
        start = self.at
        self.at = start + size
        if self.at > len(self.data):
            raise _cut_short()
        return self.data[start : self.at]

    def number(self, struct: Struct) -> Any:
        return struct.unpack(self.take(struct.size))[0]

    def text(self, size: int) -> str:
        data = self.take(size)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace")

    def array(self, size: int, depth: int) -> List[object]:
        self.check(size, depth)
        return [self.value(depth + 1) for _ in range(size)]

    def map(self, size: int, depth: int) -> Dict[object, object]:
        self.check(2 * size, depth)
        entries: Dict[object, object] = {}
        for _ in range(size):
            key = self.value(depth + 1)
            if isinstance(key, (list, dict, bytes, datetime)):
                raise ValueError("a key of a map is a list, a map, bytes or a timestamp")
            # Before Python 3.10 all NaN keys of a dict collide, and none is found again.
            if key != key:
                raise ValueError("a key of a map is not a number (NaN)")
            if size > _LARGE_MAP and not isinstance(key, str):
                self.count_number_key()
            entries[key] = self.value(depth + 1)
        return entries

    def count_number_key(self) -> None:
        self.number_keys_left -= 1
        if self.number_keys_left < 0:
            raise ValueError(f"maps of more than {_LARGE_MAP} keys have more than {MAX_NUMBER_KEYS} numbers as keys")

    def check(self, values: int, depth: int) -> None:
        """Each of the values has a byte or more."""
        if values > len(self.data) - self.at:
            raise _cut_short()
        if depth >= MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")

    def extension(self, size: int) -> object:
        return self.extended(self.take(1)[0], self.take(size))

    def extended(self, kind: int, data: bytes) -> object:
        if kind != _TIMESTAMP:
            raise ValueError(f"extension type {kind - 0x100 if kind > 0x7F else kind} is not supported")
        return _timestamp(data)


def read_value(data: bytes, reader_class: Type[Reader] = Reader) -> object:
    """The one value that `data` contains. @raises ValueError if it is empty, contains more, or is not MessagePack"""
    reader = reader_class(data)
    value = reader.value(0)
    if reader.at != len(data):
        raise ValueError(f"{len(data) - reader.at} bytes follow the value")
    return value


def _cut_short() -> ValueError:
    return ValueError("it ends inside a value")


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
