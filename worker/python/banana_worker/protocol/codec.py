"""Heads of frames, and the messages that this worker knows by name."""

from __future__ import annotations

import functools
from typing import Any, List

from banana_worker.protocol.errors import ProtocolError
from banana_worker.protocol.messages import Call, ServiceSource, StartSpec
from banana_worker.protocol.msgpack import (
    Reader,
    pack_double,
    pack_int,
    pack_text,
    read_value,
    utf8_of_head,
    write_value,
)
from banana_worker.protocol.tables import MAX_CONCURRENCY, MAX_HEAD_BYTES

_MAX_SAFE_INTEGER = 2**53 - 1


class HeadReader(Reader):
    """Reads the part of MessagePack that the wire uses, within the limits of a head."""

    max_depth = 17

    def extended(self, kind: int, data: bytes) -> object:
        raise ValueError("an extension is not allowed on this wire")


def decode_head(head: bytes) -> List[Any]:
    """`[type, field, ...]`. @raises ProtocolError on anything else"""
    try:
        fields = read_value(head, HeadReader)
    except (ValueError, TypeError) as error:
        raise ProtocolError("malformed message: head is not msgpack: %s" % error) from None
    if not isinstance(fields, list) or not fields or not isinstance(fields[0], str):
        raise ProtocolError("malformed message: head is not an array that starts with a message type")
    return fields  # pyright: ignore[reportUnknownVariableType]


def encode_head(fields: List[Any]) -> bytes:
    """@raises ValueError if the head is longer than the front takes, TypeError on a value that the wire does not
    have"""
    return _checked(write_value(fields, utf8_of_head), fields[0])


def _checked(head: bytes, kind: str) -> bytes:
    if len(head) > MAX_HEAD_BYTES:
        raise ValueError("a %s of %d bytes; at most %d are allowed" % (kind, len(head), MAX_HEAD_BYTES))
    return head


_RESULT = b"\x97" + pack_text("result")
_RESULT_AND_PHRASE = b"\x98" + pack_text("result")


def result_head(
    call_id: int, status: int, content_type: str, headers: str, body_bytes: int, run_ms: float, phrase: str
) -> bytes:
    """`encode_head` of a `result`, which every call waits for, in half the time. @raises ValueError as it does"""
    head = b"".join(
        (
            _RESULT_AND_PHRASE if phrase else _RESULT,
            pack_int(call_id),
            _pack_reply_head(status, content_type, headers),
            pack_int(body_bytes),
            pack_double(0xCB, run_ms),
        )
    )
    return _checked(head + pack_text(phrase) if phrase else head, "result")


@functools.lru_cache(maxsize=8)
def _pack_reply_head(status: int, content_type: str, headers: str) -> bytes:
    """Cached, because most answers of an app have the same head."""
    return pack_int(status) + pack_text(content_type) + pack_text(headers)


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
