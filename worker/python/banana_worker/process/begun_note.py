"""Writes the note of a call that begins: 16 bytes, in one piece, on fd 5 (docs/wire.md, "The note")."""

from __future__ import annotations

import mmap
import os
import struct
import time
from typing import Optional

from banana_worker.process.descriptors import BEGUN_FD

NOTE_BYTES = 16
_pack_note = struct.Struct("<IId").pack


class BegunNote:
    """Memory shared with the front: the note outlives this process and costs no system call. If the file cannot be
    mapped, the note is written to it."""

    def __init__(self, fd: int = BEGUN_FD) -> None:
        self._fd = fd
        self._memory = _mapped(fd)

    def begin(self, call_id: int) -> None:
        """Once this returns, the front will know that the call may have run, even if this process dies."""
        note = _pack_note(call_id, 0, time.monotonic() * 1000)
        if self._memory is None:
            os.pwrite(self._fd, note, 0)
        else:
            self._memory[:] = note

    def leave(self) -> None:
        """For a forked child, in which no call begins: releases the memory and its descriptor."""
        if self._memory is not None:
            self._memory.close()


def _mapped(fd: int) -> Optional[mmap.mmap]:
    try:
        return mmap.mmap(fd, NOTE_BYTES)
    except (OSError, ValueError):
        return None
