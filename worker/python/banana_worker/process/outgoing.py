"""Whole frames on their way into the kernel. A signal handler that raises does not tear them."""

from __future__ import annotations

import os
from typing import Callable, List, Union

BytesLike = Union[bytes, bytearray, memoryview]


class Outgoing:
    """Frames that leave in one piece."""

    __slots__ = ("_parts", "_written")

    def __init__(self, parts: List[BytesLike]) -> None:
        """`parts` together are whole frames."""
        self._parts = parts
        # Number of bytes that each write has taken.
        self._written: List[int] = []

    def write(self, fd: int) -> None:
        """Writes all of it. A signal handler may raise at any step; the next `write` goes on from there. @raises
        OSError"""
        written, parts = self._written, self._parts
        if not written:
            # Python runs no signal handler between the write and the note of the bytes it took: together they are one
            # step.
            if len(parts) == 1:
                written.extend(map(os.write, (fd,), parts))
                if written[0] == len(parts[0]):
                    return
            else:
                written.extend(map(os.writev, (fd,), (parts,)))
        size = sum(map(len, parts))
        while sum(written) < size:  # a signal handler interrupted a write
            written.extend(map(os.writev, (fd,), (self._rest(sum(written)),)))

    def _rest(self, skipped: int) -> List[BytesLike]:
        rest: List[BytesLike] = []
        for part in self._parts:
            if skipped < len(part):
                rest.append(memoryview(part)[skipped:])
            skipped = max(0, skipped - len(part))
        return rest


class OutgoingOnTurn(Outgoing):
    """Frames that are made when their turn has come; there may be none."""

    __slots__ = ("_make", "is_empty")

    def __init__(self, make: Callable[[], List[BytesLike]]) -> None:
        super().__init__([])
        self._make = make
        # Whether its turn has come, and there were none: it may come after the sender goes on.
        self.is_empty = False

    def write(self, fd: int) -> None:
        if not self._parts:
            self._parts = self._make()
        self.is_empty = not self._parts
        if self._parts:
            super().write(fd)
