"""The note of begun calls, as the front reads it."""

from __future__ import annotations

import os
import struct
import tempfile
import time
import unittest
from unittest import mock

from banana_worker.process.begun_note import BegunNote


def read_note(fd: int) -> "tuple[int, int, float]":
    return struct.unpack("<IId", os.pread(fd, 100, 0))  # type: ignore[return-value]


class Note(unittest.TestCase):
    def setUp(self) -> None:
        self.file = tempfile.TemporaryFile()
        self.file.write(bytes(16))
        self.file.flush()
        self.addCleanup(self.file.close)
        self.fd = self.file.fileno()

    def check(self, note: BegunNote) -> None:
        for id in (1, 2**32 - 1, 5):
            before_ms = time.monotonic() * 1000
            note.begin(id)
            noted, zero, at_ms = read_note(self.fd)
            self.assertEqual((noted, zero), (id, 0))
            self.assertTrue(before_ms <= at_ms <= time.monotonic() * 1000)

    def test_it_names_the_call_and_when_it_began(self) -> None:
        self.check(BegunNote(self.fd))

    def test_it_is_written_where_the_file_cannot_be_mapped(self) -> None:
        with mock.patch("mmap.mmap", side_effect=OSError):
            self.check(BegunNote(self.fd))

    def test_a_file_that_is_too_short_to_be_mapped_is_written_to(self) -> None:
        os.ftruncate(self.fd, 0)
        self.check(BegunNote(self.fd))

    def test_it_writes_nothing_after_leave(self) -> None:
        note = BegunNote(self.fd)
        note.begin(1)
        note.leave()
        with self.assertRaises(ValueError):
            note.begin(2)
        self.assertEqual(read_note(self.fd)[0], 1)


if __name__ == "__main__":
    unittest.main()
