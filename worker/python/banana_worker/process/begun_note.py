"""Writes the note of calls that begin, on fd 5 (docs/wire.md, "The note")."""

from __future__ import annotations

import mmap
import os
import struct
import time
from typing import Dict, List, Optional

from banana_worker.process.descriptors import BEGUN_FD
from banana_worker.protocol.tables import BEGUN_NOTE_BYTES

_pack_note = struct.Struct("<IId").pack


class BegunNote:
    """Memory shared with the front: the note outlives this process and costs no system call. If the file cannot be
    mapped, the note is written to it. Of a worker that runs several calls at the same time, it has an entry for each.
    It is mapped before any code of the app runs, which may close the descriptor, or open another file in its place."""

    def __init__(self, fd: int = BEGUN_FD) -> None:
        self._fd = fd
        self._memory = _mapped(fd, BEGUN_NOTE_BYTES)
        # Offsets of entries whose calls have ended.
        self._free: List[int] = []
        self._offsets: Dict[int, int] = {}

    def make_entries(self, concurrency: int) -> None:
        """For a worker that runs so many calls at the same time."""
        if concurrency == 1:
            return
        size = BEGUN_NOTE_BYTES * (1 + concurrency)
        if os.fstat(self._fd).st_size < size:
            os.ftruncate(self._fd, size)
        self.leave()
        self._memory = _mapped(self._fd, size)
        self._free = [BEGUN_NOTE_BYTES * entry for entry in range(concurrency, 0, -1)]

    def begin(self, call_id: int) -> None:
        """Once this returns, the front will know that the call may have run, even if this process dies. It reads an
        entry once the note names its call, or a later one."""
        note = _pack_note(call_id, 0, time.monotonic() * 1000)
        if self._free:
            offset = self._offsets[call_id] = self._free.pop()
            self._write(offset, note)
        self._write(0, note)

    def end(self, call_id: int) -> None:
        """The call has ended: another one may have its entry."""
        offset = self._offsets.pop(call_id, None)
        if offset is not None:
            self._free.append(offset)

    def leave(self) -> None:
        """For a forked child, in which no call begins: releases the memory and its descriptor."""
        if self._memory is not None:
            self._memory.close()

    def _write(self, offset: int, note: bytes) -> None:
        if self._memory is None:
            os.pwrite(self._fd, note, offset)
        else:
            self._memory[offset : offset + BEGUN_NOTE_BYTES] = note


def _mapped(fd: int, size: int) -> Optional[mmap.mmap]:
    try:
        return mmap.mmap(fd, size)
    except (OSError, ValueError):
        return None
