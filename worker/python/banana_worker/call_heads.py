"""Heads of frames, with calls as `Call`s.

A call mostly differs from the one before in its ids, its lengths and its deadline. What stands between these is compared
with the bytes of the last call, and read only where it differs: values of MessagePack tell where they end, so bytes that
begin with those of the last call's fields hold these fields.
"""

from __future__ import annotations

import struct
from typing import Any, List, Optional, Tuple

from banana_worker.codec import decode_head, pack, read_call, read_value, read_values, uint
from banana_worker.errors import ProtocolError
from banana_worker.messages import Call

# A `call` with its three fields and one call, up to the number of this call's fields.
_ONE_CALL = b"\x94" + pack("call") + b"\x91"
_LEAST_TAG, _MOST_TAG = 0x9C, 0x9F

# From the route to `Accept`: texts, in the middle of a call's fields.
_ABOUT_FIELDS = 6
# From the headers on. A call may leave out the last ones.
_FIRST_OF_REST = 11
_REST_DEFAULTS: Tuple[Any, ...] = ("", *Call._field_defaults.values())


class _LastFields:
    """Some fields of the last call that was read."""

    def __init__(self, texts: int, defaults: Tuple[Any, ...]) -> None:
        """The first `texts` of them must be texts; `defaults` are for those that are missing."""
        self._texts = texts
        self._defaults = defaults
        self._bytes = b""
        self._count = 0
        self._fields: Tuple[Any, ...] = ()

    def read(self, head: bytes, at: int, count: int) -> Tuple[Tuple[Any, ...], int]:
        """The fields that begin there, and where they end."""
        if count == self._count and head.startswith(self._bytes, at):
            return self._fields, at + len(self._bytes)
        fields, end = read_values(head, at, count)
        if end > len(head) or any(type(text) is not str for text in fields[: self._texts]):
            raise TypeError
        self._bytes, self._count = head[at:end], count
        self._fields = (*fields, *self._defaults[count:])
        return self._fields, end


class CallHeads:
    """Reads the heads of one stream of frames."""

    def __init__(self) -> None:
        self._about = _LastFields(_ABOUT_FIELDS, ())
        self._rest = _LastFields(1, _REST_DEFAULTS)

    def decode(self, head: bytes) -> List[Any]:
        """`decode_head`, where the calls of a `call` are instances of `Call`. @raises ProtocolError"""
        if head.startswith(_ONE_CALL):
            fields = self._one_call(head)
            if fields is not None:
                return fields
        fields = decode_head(head)
        if fields[0] == "call":
            if len(fields) < 4 or type(fields[1]) is not list:
                raise ProtocolError("malformed message: a call without calls, a number or its end")
            fields[1] = [read_call(call) for call in fields[1]]
        return fields

    def _one_call(self, head: bytes) -> Optional[List[Any]]:
        """None for what is malformed or written in another way: `decode_head` says what is wrong, or reads it."""
        try:
            return self._read(head)
        except (IndexError, TypeError, struct.error, ProtocolError):
            return None

    def _read(self, head: bytes) -> Optional[List[Any]]:
        at = len(_ONE_CALL)
        tag = head[at]
        if not _LEAST_TAG <= tag <= _MOST_TAG:
            return None
        id, at = read_value(head, at + 1)
        body_bytes, at = read_value(head, at)
        inline_bytes, at = read_value(head, at)
        request_id, at = read_value(head, at)
        about, at = self._about.read(head, at, _ABOUT_FIELDS)
        deadline_ms, at = read_value(head, at)
        rest, at = self._rest.read(head, at, (tag & 0x0F) - _FIRST_OF_REST)
        number, at = read_value(head, at)
        is_last, at = read_value(head, at)
        if at != len(head) or type(request_id) is not str:
            return None
        if type(id) is not int or type(body_bytes) is not int or type(inline_bytes) is not int:
            id, body_bytes, inline_bytes = map(uint, (id, body_bytes, inline_bytes))
        call = Call._make((id, body_bytes, inline_bytes, request_id, *about, deadline_ms, *rest))
        return ["call", [call], number, is_last]
