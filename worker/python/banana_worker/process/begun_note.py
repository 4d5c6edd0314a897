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
    mapped, the note is written to it. Of a worker that runs several calls at the same time, it has an entry for each."""

    def __init__(self, concurrency: int = 1, fd: int = BEGUN_FD) -> None:
        entries = concurrency if concurrency > 1 else 0
        size = BEGUN_NOTE_BYTES * (1 + entries)
        if entries and os.fstat(fd).st_size < size:
            os.ftruncate(fd, size)
        self._fd = fd
        self._memory = _mapped(fd, size)
        # Offsets of entries whose calls have ended.
        self._free: List[int] = [BEGUN_NOTE_BYTES * entry for entry in range(entries, 0, -1)]
        self._offsets: Dict[int, int] = {}

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
