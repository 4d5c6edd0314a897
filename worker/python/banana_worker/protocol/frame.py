"""Frames on a byte stream: `u32 head length, u32 body length` (little-endian), the head, the body.

Before: a descriptor. After: `codec.py` reads the head. A body that arrived whole with its head is copied once; the
rest of a longer one is read directly into its final memory, which `room` gives.
"""

from __future__ import annotations

import os
import struct
from typing import Any, Callable, List, Optional, Union

from banana_worker.protocol.codec import decode_head
from banana_worker.protocol.errors import ProtocolError
from banana_worker.protocol.tables import FRAME_PREFIX_BYTES, MAX_FRAGMENT_BYTES, MAX_HEAD_BYTES

# The body of a frame: bytes, or the view that `room` gave, which is full now.
Body = Union[bytes, memoryview]

_BUFFER_BYTES = 64 * 1024
# Bytes to read behind the end of a long body: enough for the head of its next fragment, and little of that fragment,
# which has memory of its own.
_NEXT_HEAD_BYTES = 64
read_prefix = struct.Struct("<II").unpack_from


class FrameReader:
    """Cuts the bytes of a descriptor into frames. `on_frame` is called once for each, in their order."""

    def __init__(
        self,
        fd: int,
        on_frame: Callable[[List[Any], Body], None],
        room: Callable[[List[Any], int], memoryview],
        decode: Callable[[bytes], List[Any]] = decode_head,
    ) -> None:
        """`room` returns the memory of a body that is still arriving; its length is the second argument. `decode`
        reads the heads."""
        self._fd = fd
        self._on_frame = on_frame
        self._room = room
        self._decode = decode
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        # The bytes between `_start` and `_end` were read and are not cut yet.
        self._start = 0
        self._end = 0
        # The frame whose body is still arriving.
        self._fields: Optional[List[Any]] = None
        self._target = memoryview(b"")
        self._filled = 0

    def read(self) -> bool:
        """Reads once, waiting for bytes if there are none, and hands over the whole frames. Returns False at the
        end. @raises ProtocolError on lengths over the limits, before any memory is taken for them"""
        if self._fields is not None:
            return self._read_body(self._fields)
        read = os.readv(self._fd, [self._view[self._end :]])
        self._end += read
        self._cut()
        return read > 0

    def _read_body(self, fields: List[Any]) -> bool:
        """Reads into the body's own memory, and a few bytes behind it into the buffer, which is empty now."""
        missing = len(self._target) - self._filled
        read = os.readv(self._fd, [self._target[self._filled :], self._view[:_NEXT_HEAD_BYTES]])
        self._filled += min(read, missing)
        if read >= missing:
            self._end = read - missing
            target = self._target
            self._fields, self._target = None, memoryview(b"")
            self._on_frame(fields, target)
            self._cut()
        return read > 0

    def _cut(self) -> None:
        """Hands over the whole frames, and keeps the beginning of the next one at the front of the buffer."""
        while self._fields is None and self._end - self._start >= FRAME_PREFIX_BYTES:
            head_bytes, body_bytes = read_prefix(self._buffer, self._start)
            _check_lengths(head_bytes, body_bytes)
            head_start = self._start + FRAME_PREFIX_BYTES
            head_end = head_start + head_bytes
            if head_end > self._end:
                self._make_room(FRAME_PREFIX_BYTES + head_bytes)
                return
            fields = self._decode(bytes(self._view[head_start:head_end]))
            body_end = head_end + body_bytes
            if body_end > self._end:
                self._begin_body(fields, head_end, body_bytes)
                return
            self._start = body_end
            self._on_frame(fields, bytes(self._view[head_end:body_end]))
        if self._start == self._end:
            self._start = self._end = 0
        else:
            self._make_room(FRAME_PREFIX_BYTES)

    def _begin_body(self, fields: List[Any], at: int, body_bytes: int) -> None:
        target = self._room(fields, body_bytes)
        self._filled = self._end - at
        target[: self._filled] = self._view[at : self._end]
        self._fields, self._target = fields, target
        self._start = self._end = 0

    def _make_room(self, needed: int) -> None:
        """Moves the beginning of a frame to the front of the buffer, where `needed` bytes of it must fit."""
        begun = bytes(self._view[self._start : self._end])
        if needed > len(self._buffer):
            self._buffer = bytearray(needed)
            self._view = memoryview(self._buffer)
        self._view[: len(begun)] = begun
        self._start, self._end = 0, len(begun)


def _check_lengths(head_bytes: int, body_bytes: int) -> None:
    if not 0 < head_bytes <= MAX_HEAD_BYTES:
        raise ProtocolError("frame head of %d bytes; 1 to %d are allowed" % (head_bytes, MAX_HEAD_BYTES))
    if body_bytes > MAX_FRAGMENT_BYTES:
        raise ProtocolError("frame body of %d bytes; at most %d are allowed" % (body_bytes, MAX_FRAGMENT_BYTES))
