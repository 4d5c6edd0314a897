"""Sends frames to the front. When `send` returns, the frame is in the kernel, so it survives the death of this process.

May be used from any thread and from a signal handler. If the handler interrupts a `send` of its own thread, its
frame leaves after that one, later than its own `send` returns; an error of that write is raised by the interrupted
`send`. A frame is written in one piece; between two fragments of a body other frames may come.
"""

from __future__ import annotations

import collections
import struct
from typing import Any, Callable, Deque, List

from banana_worker.process.ending import is_broken_pipe
from banana_worker.process.outgoing import BytesLike, InTurn, Outgoing, OutgoingOnTurn
from banana_worker.protocol.codec import encode_head
from banana_worker.protocol.tables import MAX_FRAGMENT_BYTES

# Smaller bodies are copied behind their heads: one write of one buffer is quicker than one of two.
_COPY_LIMIT_BYTES = 16 * 1024
# Fragments per write: enough to keep the front busy, few enough that other frames need not wait long.
_FRAGMENTS_PER_WRITE = 4

_pack_prefix = struct.Struct("<II").pack


class Channel:
    def __init__(self, fd: int, on_broken: Callable[[int, OSError], None]) -> None:
        """`on_broken` is called with the descriptor and its error when nothing can be sent any more."""
        self._fd = fd
        self._on_broken = on_broken
        self._frames = InTurn(self._write)
        # One long body at a time is sent in fragments, so that those of two webhooks do not mix.
        self._long_bodies = InTurn(self._write_fragments)
        # Long bodies from signal handlers that interrupted a frame of their own thread. Waiting there would be a
        # deadlock: another thread may be sending a long body, and wait for that frame.
        self._later: Deque[Deque[Outgoing]] = collections.deque()
        self._silent = False

    def silence(self) -> None:
        """For a forked child: the front would take its messages for this worker's, so nothing is sent any more."""
        self._silent = True

    def send(self, fields: List[Any], body: bytes = b"") -> None:
        """Sends a message of one frame. @raises ValueError if its head is too long"""
        self.write(Outgoing([frame(encode_head(fields), body)]))

    def send_if(self, is_wanted: Callable[[], bool], fields: List[Any], body: bytes = b"") -> bool:
        """Sends a message of one frame if `is_wanted` returns True when its turn has come. Returns False if it
        was not wanted."""
        out = OutgoingOnTurn(lambda: [frame(encode_head(fields), body)] if is_wanted() else [])
        self.write(out)
        return not out.is_empty

    def send_on_turn(self, messages: Callable[[], List[List[Any]]]) -> None:
        """Sends messages of one frame each; `messages` is called when their turn has come. A frame that another
        thread sends after that call leaves behind them."""
        self.write(OutgoingOnTurn(lambda: [frame(encode_head(fields)) for fields in messages()]))

    def send_body(self, head: bytes, id: int, body: BytesLike) -> None:
        """Sends a message whose body may need several frames: its head, then `body` frames of this id."""
        size = len(body)
        if size <= _COPY_LIMIT_BYTES:
            self.write(Outgoing([_pack_prefix(len(head), size) + head + body]))
            return
        view = memoryview(body)
        if size <= MAX_FRAGMENT_BYTES:
            self.write(Outgoing([_pack_prefix(len(head), size) + head, view]))
            return
        writes = _in_fragments(head, id, view)
        if self._silent:
            return
        if self._frames.is_interrupted():
            self._later.append(writes)
        else:
            self._long_bodies.ask(writes)

    def write(self, out: Outgoing) -> None:
        if self._silent:
            return
        try:
            self._frames.ask(out)
        finally:
            if self._later and not self._frames.is_interrupted():
                self._send_later()

    def _send_later(self) -> None:
        while self._later:
            try:
                writes = self._later.popleft()
            except IndexError:
                return  # another thread sends it
            self._long_bodies.ask(writes)

    def _write_fragments(self, writes: Deque[Outgoing]) -> None:
        while writes:
            self.write(writes[0])
            writes.popleft()

    def _write(self, out: Outgoing) -> None:
        try:
            out.write(self._fd)
        except OSError as thrown:
            if not is_broken_pipe(thrown):
                raise
            if not self._silent:
                self._on_broken(self._fd, thrown)


def _in_fragments(head: bytes, id: int, view: memoryview) -> Deque[Outgoing]:
    """The writes that a long body needs."""
    writes: Deque[Outgoing] = collections.deque()
    next_head = encode_head(["body", id])
    parts: List[BytesLike] = []
    for start in range(0, len(view), MAX_FRAGMENT_BYTES):
        fragment = view[start : start + MAX_FRAGMENT_BYTES]
        parts += (_pack_prefix(len(head), len(fragment)) + head, fragment)
        head = next_head
        if len(parts) == 2 * _FRAGMENTS_PER_WRITE:
            writes.append(Outgoing(parts))
            parts = []
    if parts:
        writes.append(Outgoing(parts))
    return writes


def frame(head: bytes, body: bytes = b"") -> bytes:
    return _pack_prefix(len(head), len(body)) + head + body
