"""Frames to the front. What was sent is in the kernel when `send` returns: it survives the death of this process.

May be used from any thread, and by a signal handler: what it sends while its thread sends leaves after that, later than
its `send` returns. A frame is written in one piece; between two fragments of a body other frames may come.
"""

from __future__ import annotations

import os
import struct
from typing import Any, Callable, List, Tuple, Union

from banana_worker.codec import encode_head
from banana_worker.in_turn import InTurn
from banana_worker.messages import MAX_FRAGMENT_BYTES

BytesLike = Union[bytes, bytearray, memoryview]

# Smaller bodies are copied behind their heads: one write of one buffer is quicker than one of two.
_COPY_LIMIT_BYTES = 16 * 1024
# Fragments that go out in one write: enough to keep the front busy, few enough for others to get a word in.
_FRAGMENTS_PER_WRITE = 4

_pack_prefix = struct.Struct("<II").pack


class Channel:
    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        """`on_broken` is called when the front is gone."""
        self._fd = fd
        self._on_broken = on_broken
        self._frames = InTurn(self._write_frames)
        # One long body at a time leaves in fragments: webhooks may not mix.
        self._long_bodies = InTurn(self._send_fragments)
        self._silent = False

    def silence(self) -> None:
        """In a forked child, whose words the front would take for ours: nothing is sent any more."""
        self._silent = True

    def send(self, fields: List[Any], body: bytes = b"") -> None:
        """Sends a message of one frame. @raises ValueError if its head is too long"""
        self.write([frame(encode_head(fields), body)])

    def send_body(self, head: bytes, id: int, body: BytesLike) -> None:
        """Sends a message whose body may need several frames: its head, then `body` frames of this id."""
        if self._silent:
            return
        size = len(body)
        if size <= _COPY_LIMIT_BYTES:
            self.write([_pack_prefix(len(head), size) + head + body])
            return
        view = memoryview(body)
        if size <= MAX_FRAGMENT_BYTES:
            self.write([_pack_prefix(len(head), size) + head, view])
            return
        self._long_bodies.ask((head, id, view))

    def _send_fragments(self, message: Tuple[bytes, int, memoryview]) -> None:
        head, id, view = message
        next_head = encode_head(["body", id])
        parts: List[BytesLike] = []
        for start in range(0, len(view), MAX_FRAGMENT_BYTES):
            fragment = view[start : start + MAX_FRAGMENT_BYTES]
            parts += (_pack_prefix(len(head), len(fragment)) + head, fragment)
            head = next_head
            if len(parts) == 2 * _FRAGMENTS_PER_WRITE:
                self.write(parts)
                parts = []
        if parts:
            self.write(parts)

    def write(self, parts: List[BytesLike]) -> None:
        """Writes whole frames, given in parts."""
        if self._silent:
            return
        try:
            self._frames.ask(parts)
        except OSError:
            if not self._silent:
                self._on_broken()

    def _write_frames(self, parts: List[BytesLike]) -> None:
        written = os.writev(self._fd, parts) if len(parts) > 1 else os.write(self._fd, parts[0])
        missing = sum(map(len, parts)) - written
        if missing > 0:
            self._write_rest(parts, written)

    def _write_rest(self, parts: List[BytesLike], written: int) -> None:
        for part in parts:
            if written >= len(part):
                written -= len(part)
                continue
            rest = memoryview(part)[written:]
            written = 0
            while len(rest) > 0:
                rest = rest[os.write(self._fd, rest) :]


def frame(head: bytes, body: bytes = b"") -> bytes:
    return _pack_prefix(len(head), len(body)) + head + body
