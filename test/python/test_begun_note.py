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
    return struct.unpack("<IId", os.pread(fd, 16, 0))  # type: ignore[return-value]


def with_entries(fd: int) -> BegunNote:
    note = BegunNote(fd)
    note.make_entries(3)
    return note


class WithFile(unittest.TestCase):
    def setUp(self) -> None:
        self.file = tempfile.TemporaryFile()
        self.file.write(bytes(16))
        self.file.flush()
        self.addCleanup(self.file.close)
        self.fd = self.file.fileno()


class Note(WithFile):
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

    def test_an_app_that_closes_the_descriptor_takes_nothing_away(self) -> None:
        fd = os.dup(self.fd)
        note = BegunNote(fd)
        os.close(fd)
        self.check(note)

    def test_it_writes_nothing_after_leave(self) -> None:
        note = BegunNote(self.fd)
        note.begin(1)
        note.leave()
        with self.assertRaises(ValueError):
            note.begin(2)
        self.assertEqual(read_note(self.fd)[0], 1)


class Times(WithFile):
    def entries(self) -> "dict[int, float]":
        data = os.pread(self.fd, 4096, 16)
        return {id: at_ms for id, _, at_ms in struct.iter_unpack("<IId", data)}

    def check_entries(self, note: BegunNote) -> None:
        for id in (1, 2, 3):
            note.begin(id)
        first = self.entries()
        self.assertLessEqual(first[1], first[2])
        for id in range(4, 20):
            note.end(id - 1)  # the first two run on
            note.begin(id)
            entries = self.entries()
            self.assertEqual(read_note(self.fd)[0], id)
            self.assertEqual((entries[1], entries[2]), (first[1], first[2]))
            self.assertEqual(entries[id], read_note(self.fd)[2])

    def test_every_call_that_runs_keeps_its_time(self) -> None:
        self.check_entries(with_entries(self.fd))

    def test_entries_are_written_where_the_file_cannot_be_mapped(self) -> None:
        with mock.patch("mmap.mmap", side_effect=OSError):
            self.check_entries(with_entries(self.fd))


if __name__ == "__main__":
    unittest.main()
