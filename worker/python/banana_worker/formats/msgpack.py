"""MessagePack bodies, and the writer: without extension types, so that any reader can read them."""

from __future__ import annotations

from struct import pack
from typing import Any, List, NamedTuple, Sequence, Tuple

from banana_worker.failures.sentences import as_sentence
from banana_worker.formats.msgpack_reader import read_value
from banana_worker.protocol.errors import bad_body
from banana_worker.protocol.messages import Call
from banana_worker.text.charsets import utf8
from banana_worker.values.plain_value import plain_value

ITEM_TYPE = "application/msgpack"


def read(body: bytes, call: Call) -> object:
    """Reads one MessagePack value; timestamps become aware datetimes. @raises SERVE_BAD_BODY"""
    try:
        return read_value(body)
    except ValueError as cause:
        message = f"The body is not valid MessagePack: {as_sentence(str(cause))}"
        raise bad_body(message) from cause


def write(value: object, call: Call) -> Tuple[str, bytes]:
    """The content type and the bytes of a value. @raises SERVE_OUTPUT_INVALID naming the property"""
    return "application/msgpack", write_value(plain_value(value, is_binary=True))


class Extension(NamedTuple):
    """A value of a type that MessagePack itself does not have."""

    kind: int
    # Bytes, or views of some.
    pieces: List[Any]


def write_value(value: object) -> bytes:
    """The bytes of a value made only of None, bool, int within 64 bits, float, str, bytes, list, dict and Extension."""
    pieces: List[bytes] = []
    _write(value, pieces)
    return b"".join(pieces)


def _write(value: object, out: List[bytes]) -> None:
    if value is None:
        out.append(b"\xc0")
    elif isinstance(value, bool):
        out.append(b"\xc3" if value else b"\xc2")
    elif isinstance(value, int):
        out.append(_integer(value))
    elif isinstance(value, float):
        out.append(pack(">Bd", 0xCB, value))
    elif isinstance(value, str):
        data = utf8(value)
        out.append(_head(len(data), (0xA0, 32), ((0xD9, "B"), (0xDA, "H"), (0xDB, "I"))))
        out.append(data)
    elif isinstance(value, bytes):
        out.append(_head(len(value), (0, 0), ((0xC4, "B"), (0xC5, "H"), (0xC6, "I"))))
        out.append(value)
    elif isinstance(value, dict):
        out.append(_head(len(value), (0x80, 16), ((0xDE, "H"), (0xDF, "I"))))
        for key, item in value.items():
            _write(key, out)
            _write(item, out)
    elif isinstance(value, Extension):
        out.append(pack(">BIB", 0xC9, sum(memoryview(piece).nbytes for piece in value.pieces), value.kind))
        out.extend(value.pieces)
    else:
        assert isinstance(value, list), "values are made plain before they are written"
        out.append(_head(len(value), (0x90, 16), ((0xDC, "H"), (0xDD, "I"))))
        for item in value:
            _write(item, out)


def _head(size: int, short: Tuple[int, int], forms: Sequence[Tuple[int, str]]) -> bytes:
    """The mark and the size of a value; `short`: the mark that includes sizes below the second number."""
    if size < short[1]:
        return bytes((short[0] | size,))
    for mark, form in forms:
        if size < 1 << 8 * {"B": 1, "H": 2, "I": 4}[form]:
            return pack(">B" + form, mark, size)
    raise OverflowError("a value is longer than MessagePack allows")


def _integer(value: int) -> bytes:
    if -32 <= value < 128:
        return pack(">b" if value < 0 else ">B", value)
    if value >= 0:
        for mark, form, bits in ((0xCC, "B", 8), (0xCD, "H", 16), (0xCE, "I", 32), (0xCF, "Q", 64)):
            if value < 1 << bits:
                return pack(">B" + form, mark, value)
    for mark, form, bits in ((0xD0, "b", 7), (0xD1, "h", 15), (0xD2, "i", 31), (0xD3, "q", 63)):
        if -(1 << bits) <= value < 0:
            return pack(">B" + form, mark, value)
    raise OverflowError("a whole number is beyond 64 bits")
