"""Heads of frames: the part of MessagePack that the wire uses, within the limits of a head."""

from __future__ import annotations

import functools
import struct
from typing import Any, Dict, List, Tuple

from banana_worker.protocol.errors import ProtocolError
from banana_worker.protocol.messages import Call, ServiceSource, StartSpec
from banana_worker.protocol.tables import MAX_CONCURRENCY, MAX_HEAD_BYTES

_MAX_DEPTH = 16
_MAX_SAFE_INTEGER = 2**53 - 1

_NUMBERS: Dict[int, struct.Struct] = {
    0xCA: struct.Struct(">f"),
    0xCB: struct.Struct(">d"),
    0xCC: struct.Struct(">B"),
    0xCD: struct.Struct(">H"),
    0xCE: struct.Struct(">I"),
    0xCF: struct.Struct(">Q"),
    0xD0: struct.Struct(">b"),
    0xD1: struct.Struct(">h"),
    0xD2: struct.Struct(">i"),
    0xD3: struct.Struct(">q"),
}

# Layouts of the length behind a tag.
_LENGTHS: Dict[int, Tuple[str, struct.Struct]] = {
    0xC4: ("bin", struct.Struct(">B")),
    0xC5: ("bin", struct.Struct(">H")),
    0xC6: ("bin", struct.Struct(">I")),
    0xD9: ("str", struct.Struct(">B")),
    0xDA: ("str", struct.Struct(">H")),
    0xDB: ("str", struct.Struct(">I")),
    0xDC: ("list", struct.Struct(">H")),
    0xDD: ("list", struct.Struct(">I")),
    0xDE: ("map", struct.Struct(">H")),
    0xDF: ("map", struct.Struct(">I")),
}

_SHORT_TEXT = 0xD9
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def decode_head(head: bytes) -> List[Any]:
    """`[type, field, ...]`. @raises ProtocolError on anything else"""
    try:
        fields, end = read_value(head, 0)
    except (IndexError, struct.error, TypeError, RecursionError) as error:
        raise ProtocolError("malformed message: head is not msgpack: %s" % error) from None
    # A text that claims to be longer than the head ends behind it.
    if end != len(head):
        raise ProtocolError("malformed message: the head's value ends at byte %d of %d" % (end, len(head)))
    if not isinstance(fields, list) or not fields or not isinstance(fields[0], str):
        raise ProtocolError("malformed message: head is not an array that starts with a message type")
    return fields


def read_value(data: bytes, at: int, depth: int = 0) -> Tuple[Any, int]:
    """The value at `at`, and its end, which is behind the data if a text claims to be longer. @raises IndexError,
    TypeError, struct.error, RecursionError, ProtocolError"""
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 0x100, at
    if tag < 0x90:
        return _map(data, at, tag & 0x0F, depth)
    if tag < 0xA0:
        return read_values(data, at, tag & 0x0F, depth)
    if tag < 0xC0:
        end = at + (tag & 0x1F)
        return data[at:end].decode("utf-8", "replace"), end
    layout = _NUMBERS.get(tag)
    if layout is not None:
        return layout.unpack_from(data, at)[0], at + layout.size
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at
    if tag in _LENGTHS:
        return _sized(data, at, tag, depth)
    raise ProtocolError("malformed message: byte 0x%02x is not allowed on this wire" % tag)


def _sized(data: bytes, at: int, tag: int, depth: int) -> Tuple[Any, int]:
    kind, layout = _LENGTHS[tag]
    length: int = layout.unpack_from(data, at)[0]
    at += layout.size
    if kind == "list":
        return read_values(data, at, length, depth)
    if kind == "map":
        return _map(data, at, length, depth)
    end = at + length
    return (data[at:end].decode("utf-8", "replace") if kind == "str" else data[at:end]), end


def read_values(data: bytes, at: int, length: int, depth: int = 0) -> Tuple[List[Any], int]:
    """`read_value` for several values in a row. The most frequent kinds of fields are read here, since a call has a
    dozen of them."""
    if depth > _MAX_DEPTH:
        raise ProtocolError("malformed message: more than %d levels" % _MAX_DEPTH)
    items: List[Any] = []
    for _ in range(length):
        tag = data[at]
        if tag < 0x80:
            at += 1
            items.append(tag)
        elif 0xA0 <= tag < 0xC0:
            end = at + 1 + (tag & 0x1F)
            items.append(data[at + 1 : end].decode("utf-8", "replace"))
            at = end
        elif tag == _SHORT_TEXT:
            end = at + 2 + data[at + 1]
            items.append(data[at + 2 : end].decode("utf-8", "replace"))
            at = end
        else:
            value, at = read_value(data, at, depth + 1)
            items.append(value)
    return items, at


def _map(data: bytes, at: int, length: int, depth: int) -> Tuple[Dict[Any, Any], int]:
    if length > len(data):
        raise ProtocolError("malformed message: a map of %d entries" % length)
    flat, at = read_values(data, at, 2 * length, depth)
    return dict(zip(flat[::2], flat[1::2])), at


_pack_double = struct.Struct(">Bd").pack
_pack_u8 = struct.Struct(">BB").pack
_pack_u16 = struct.Struct(">BH").pack
_pack_u32 = struct.Struct(">BI").pack
_pack_u64 = struct.Struct(">BQ").pack
_pack_i64 = struct.Struct(">Bq").pack
_SMALL = [bytes((n,)) for n in range(128)]


def encode_head(fields: List[Any]) -> bytes:
    """@raises ValueError if the head is longer than the front takes, TypeError on a value that the wire does not
    have"""
    return _checked(pack(fields), fields[0])


def _checked(head: bytes, kind: str) -> bytes:
    if len(head) > MAX_HEAD_BYTES:
        raise ValueError("a %s of %d bytes; at most %d are allowed" % (kind, len(head), MAX_HEAD_BYTES))
    return head


def pack(value: Any) -> bytes:
    kind = type(value)
    if kind is str:
        return _pack_text(value)
    if kind is int:
        return _pack_int(value)
    if kind is float:
        return _pack_double(0xCB, value)
    if value is None:
        return b"\xc0"
    if kind is bool:
        return b"\xc3" if value else b"\xc2"
    return _pack_other(value)


def _pack_text(text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    size = len(data)
    if size < 32:
        return b"%c%b" % (0xA0 | size, data)
    if size < 0x100:
        return _pack_u8(0xD9, size) + data
    if size < 0x10000:
        return _pack_u16(0xDA, size) + data
    return _pack_u32(0xDB, size) + data


def _pack_int(number: int) -> bytes:
    if 0 <= number < 128:
        return _SMALL[number]
    if 0 <= number < 0x10000:
        return _pack_u16(0xCD, number)
    if 0 <= number < 0x100000000:
        return _pack_u32(0xCE, number)
    if 0 <= number < 2**64:
        return _pack_u64(0xCF, number)
    return _pack_i64(0xD3, number) if -(2**63) <= number < 0 else _pack_double(0xCB, float(number))


def _pack_other(value: Any) -> bytes:
    if isinstance(value, (list, tuple)):
        return _pack_u32(0xDD, len(value)) + b"".join(map(pack, value))
    if isinstance(value, dict):
        pairs = b"".join(pack(str(key)) + pack(item) for key, item in value.items())
        return _pack_u32(0xDF, len(value)) + pairs
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            return pack(plain(value))
    raise TypeError("a %s cannot be sent in a message" % type(value).__name__)


_RESULT = b"\x97" + pack("result")
_RESULT_AND_PHRASE = b"\x98" + pack("result")


def result_head(
    call_id: int, status: int, content_type: str, headers: str, body_bytes: int, run_ms: float, phrase: str
) -> bytes:
    """`encode_head` of a `result`, which every call waits for, in half the time. @raises ValueError as it does"""
    head = b"".join(
        (
            _RESULT_AND_PHRASE if phrase else _RESULT,
            _pack_int(call_id),
            _pack_reply_head(status, content_type, headers),
            _pack_int(body_bytes),
            _pack_double(0xCB, run_ms),
        )
    )
    return _checked(head + _pack_text(phrase) if phrase else head, "result")


@functools.lru_cache(maxsize=8)
def _pack_reply_head(status: int, content_type: str, headers: str) -> bytes:
    """Cached, because most answers of an app have the same head."""
    return _pack_int(status) + _pack_text(content_type) + _pack_text(headers)


_CALL_FIELDS = len(Call._fields)


def read_call(fields: Any) -> Call:
    """@raises ProtocolError"""
    if not isinstance(fields, list) or len(fields) < 12:
        raise ProtocolError("malformed message: a call is not an array of 12 fields or more")
    call = Call(*fields[:_CALL_FIELDS])
    if type(call.id) is not int or type(call.body_bytes) is not int or type(call.inline_bytes) is not int:
        id, body_bytes, inline_bytes = map(uint, fields[:3])
        call = call._replace(id=id, body_bytes=body_bytes, inline_bytes=inline_bytes)
    for text in (call.request_id, call.route, call.format, call.content_type, call.headers):
        if type(text) is not str:
            raise ProtocolError("malformed message: a field of a call is not a string")
    return call


def uint(value: Any) -> int:
    """A whole number in any encoding. @raises ProtocolError"""
    if isinstance(value, (int, float)) and 0 <= value <= _MAX_SAFE_INTEGER and value == int(value):
        return int(value)
    raise ProtocolError("malformed message: %.40r is not a whole number" % (value,))


def read_start(spec: Any) -> StartSpec:
    """@raises ProtocolError"""
    try:
        device, limits, service = spec["device"], spec["limits"], spec.get("service")
        return StartSpec(
            app=spec["app"],
            app_place=spec.get("appPlace") or "",
            model=spec["model"],
            version=spec["version"],
            worker=uint(spec["worker"]),
            gpu=device["gpu"],
            threads=uint(device["threads"]),
            max_output_bytes=uint(limits["maxOutputBytes"]),
            stream_window_bytes=uint(limits["streamWindowBytes"]),
            print_mark=spec["printMark"],
            batch_size=uint(spec.get("batchSize") or 0),
            server_version=spec.get("serverVersion") or "",
            raw_items=spec.get("rawItems"),
            service=None if service is None else ServiceSource(service["handler"], service["modelDir"]),
            ready_within_ms=spec.get("readyWithinMs"),
            env=spec.get("env") or {},
            concurrency=uint(spec.get("concurrency") or MAX_CONCURRENCY),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ProtocolError("malformed message: start: %r" % error) from None
