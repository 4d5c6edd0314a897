"""MessagePack, both ways: heads of frames, and the values of bodies. Every length is checked before memory is taken for it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from struct import Struct, pack
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple, Type

from banana_worker.text.charsets import utf8

# Deeper values would come near the recursion limit of Python: each level takes four frames of 1000.
MAX_DEPTH = 128

# Python places a text in a dict by a secret hash of the process, but a number by its value, so a client can choose
# numbers that all collide. The time grows with the square of their count, and is 8 s for so many.
MAX_NUMBER_KEYS = 100_000

# Number keys of smaller maps take little time even if they collide, and do not count.
_LARGE_MAP = 1000

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Reader:
    """Reads the values of `data`. The end of one may lie behind the data if a text claims to be longer. @raises ValueError,
    or IndexError if the data end inside a value"""

    max_depth = MAX_DEPTH

    def __init__(self, data: bytes) -> None:
        self.data = data
        # The place of the next byte to read.
        self.at = 0
        # Number keys that the large maps may still have, all together.
        self.number_keys_left = MAX_NUMBER_KEYS

    def value(self, depth: int = 0) -> object:
        first = self.data[self.at]
        self.at += 1
        if first < 0x80:
            return first
        if first >= 0xC0:
            return self.number(_NUMBERS[first]) if first in _NUMBERS else self.marked(first, depth)
        if first >= 0xA0:
            return self.text(first & 0x1F)
        return self.values(first & 0x0F, depth) if first >= 0x90 else self.map(first & 0x0F, depth)

    def marked(self, first: int, depth: int) -> object:
        if first in _CONSTANTS:
            return _CONSTANTS[first]
        if first >= 0xE0:
            return first - 0x100
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
            return self.values(size, depth)
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
        return self.take(size).decode("utf-8", "replace")

    def values(self, count: int, depth: int = 0) -> List[Any]:
        """Several values in a row. The most frequent kinds of fields are read here, since a call has a dozen of them."""
        self.check(count, depth)
        data, at = self.data, self.at
        items: List[Any] = []
        for _ in range(count):
            first = data[at]
            if first < 0x80:
                at += 1
                items.append(first)
            elif 0xA0 <= first < 0xC0:
                end = at + 1 + (first & 0x1F)
                items.append(data[at + 1 : end].decode("utf-8", "replace"))
                at = end
            elif first == _SHORT_TEXT:
                end = at + 2 + data[at + 1]
                items.append(data[at + 2 : end].decode("utf-8", "replace"))
                at = end
            elif first in _NUMBERS:
                self.at = at + 1
                items.append(self.number(_NUMBERS[first]))
                at = self.at
            else:
                self.at = at
                items.append(self.value(depth + 1))
                at = self.at
        self.at = at
        return items

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
        if depth >= self.max_depth:
            raise ValueError(f"it is nested more than {self.max_depth} levels deep")

    def extension(self, size: int) -> object:
        return self.extended(self.take(1)[0], self.take(size))

    def extended(self, kind: int, data: bytes) -> object:
        if kind != _TIMESTAMP:
            raise ValueError(f"extension type {kind - 0x100 if kind > 0x7F else kind} is not supported")
        return _timestamp(data)


def read_value(data: bytes, reader_class: Type[Reader] = Reader) -> Any:
    """The one value that `data` contains. @raises ValueError if it is empty, contains more, or is not MessagePack"""
    reader = reader_class(data)
    try:
        value = reader.value()
    except IndexError:
        raise _cut_short() from None
    if reader.at > len(data):
        raise _cut_short()
    if reader.at < len(data):
        raise ValueError(f"{len(data) - reader.at} bytes follow the value")
    return value


def _cut_short() -> ValueError:
    return ValueError("it ends inside a value")


_SHORT_TEXT = 0xD9
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


class Extension(NamedTuple):
    """A value of a type that MessagePack itself does not have."""

    kind: int
    # Bytes, or views of some.
    pieces: List[Any]


Encode = Callable[[str], bytes]


def write_value(value: object, encode: Encode = utf8) -> bytes:
    """The bytes of a value made only of None, bool, int, float, str, bytes, list, tuple, dict and Extension. An int beyond 64
    bits becomes a float. `encode` makes UTF-8 of any text. @raises TypeError"""
    pieces: List[bytes] = []
    _write(value, pieces, encode)
    return b"".join(pieces)


def _write(value: Any, out: List[bytes], encode: Encode) -> None:
    kind = type(value)
    if kind is str:
        data = encode(value)
        out.append(_text_head(len(data)))
        out.append(data)
    elif kind is int:
        out.append(pack_int(value))
    elif kind is float:
        out.append(pack_double(0xCB, value))
    elif value is None:
        out.append(b"\xc0")
    elif kind is bool:
        out.append(b"\xc3" if value else b"\xc2")
    elif kind is list:
        _write_items(value, out, encode)
    elif kind is dict:
        _write_entries(value, out, encode)
    else:
        _write_other(value, out, encode)


def _write_items(value: Sequence[Any], out: List[bytes], encode: Encode) -> None:
    out.append(_head(len(value), (0x90, 16), ((0xDC, "H"), (0xDD, "I"))))
    for item in value:
        _write(item, out, encode)


def _write_entries(value: Dict[Any, Any], out: List[bytes], encode: Encode) -> None:
    out.append(_head(len(value), (0x80, 16), ((0xDE, "H"), (0xDF, "I"))))
    for key, item in value.items():
        _write(str(key), out, encode)
        _write(item, out, encode)


def _write_other(value: Any, out: List[bytes], encode: Encode) -> None:
    if isinstance(value, bytes):
        out.append(_head(len(value), (0, 0), ((0xC4, "B"), (0xC5, "H"), (0xC6, "I"))))
        out.append(value)
    elif isinstance(value, Extension):
        out.append(pack(">BIB", 0xC9, sum(memoryview(piece).nbytes for piece in value.pieces), value.kind))
        out.extend(value.pieces)
    elif isinstance(value, (list, tuple)):
        _write_items(value, out, encode)
    else:
        plain = next((one for one in _PLAIN if isinstance(value, one)), None)
        if plain is None:
            raise TypeError("a %s cannot be sent in a message" % type(value).__name__)
        _write(plain(value), out, encode)


_PLAIN: Tuple[Any, ...] = (int, float, str, dict)


def _head(size: int, short: Tuple[int, int], forms: Sequence[Tuple[int, str]]) -> bytes:
    """The mark and the size of a value; `short`: the mark that includes sizes below the second number."""
    if size < short[1]:
        return bytes((short[0] | size,))
    for mark, form in forms:
        if size < 1 << 8 * {"B": 1, "H": 2, "I": 4}[form]:
            return pack(">B" + form, mark, size)
    raise OverflowError("a value is longer than MessagePack allows")


def _text_head(size: int) -> bytes:
    return _SHORT_TEXTS[size] if size < 32 else _head(size, (0xA0, 32), ((0xD9, "B"), (0xDA, "H"), (0xDB, "I")))


def utf8_of_head(text: str) -> bytes:
    """Half of a surrogate pair becomes a question mark: a header of HTTP, such as the name of a file, can hold no U+FFFD."""
    return text.encode("utf-8", "replace")


def pack_text(text: str) -> bytes:
    data = utf8_of_head(text)
    return _text_head(len(data)) + data


pack_double = Struct(">Bd").pack
_pack_u16 = Struct(">BH").pack
_SMALL = [bytes((number,)) for number in range(128)]
_SHORT_TEXTS = [bytes((0xA0 | size,)) for size in range(32)]
_WHOLE = ((0xCC, ">BB", 8), (0xCD, ">BH", 16), (0xCE, ">BI", 32), (0xCF, ">BQ", 64))
_BELOW_ZERO = ((0xD0, ">Bb", 7), (0xD1, ">Bh", 15), (0xD2, ">Bi", 31), (0xD3, ">Bq", 63))


def pack_int(number: int) -> bytes:
    if 0 <= number < 128:
        return _SMALL[number]
    if 0x100 <= number < 0x10000:  # most sizes and ids
        return _pack_u16(0xCD, number)
    if -32 <= number < 0:
        return bytes((number + 0x100,))
    for mark, form, bits in _WHOLE if number >= 0 else _BELOW_ZERO:
        if -(1 << bits) <= number < 1 << bits:
            return pack(form, mark, number)
    return pack_double(0xCB, float(number))
