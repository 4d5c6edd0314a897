"""Arriving calls: batches in several frames, bodies in several fragments, cancelled ones."""

from __future__ import annotations

import unittest
from typing import Any, List

from banana_worker.protocol.errors import ProtocolError
from banana_worker.protocol.messages import Call
from banana_worker.run.arriving_calls import ArrivingCalls


def announced(id: int, body_bytes: int, inline_bytes: int) -> Call:
    return Call(id, body_bytes, inline_bytes, "r%d" % id, "/", "/", "", "auto", "", "", None, "")


class Arriving(unittest.TestCase):
    def setUp(self) -> None:
        self.batches: List[Any] = []
        self.arriving = ArrivingCalls(
            lambda batch: self.batches.append([(waiting.call.id, waiting.body) for waiting in batch])
        )

    def call(self, calls: List[Call], batch: int, last: bool, body: bytes = b"") -> None:
        self.arriving.take_frame(calls, batch, last, body)

    def test_a_fragment_that_was_read_into_its_place_becomes_bytes(self) -> None:
        self.call([announced(1, 6, 2)], 1, True, b"ab")
        for part in (b"cd", b"ef"):
            room = self.arriving.room(1, 2)
            room[:] = part
            self.arriving.take_body(1, room)
        self.assertEqual(self.batches, [[(1, b"abcdef")]])
        self.assertIs(type(self.batches[0][0][1]), bytes)

    def test_bodies_that_do_not_add_up_are_refused(self) -> None:
        for calls, body in (
            ([announced(1, 1, 2)], b"ab"),
            ([announced(1, 5, 3)], b"ab"),
            ([announced(1, 9, 0), announced(1, 9, 0)], b""),
        ):
            with self.subTest(calls):
                with self.assertRaises(ProtocolError):
                    ArrivingCalls(lambda batch: None).take_frame(calls, 1, True, body)

    def test_fragments_of_unknown_calls_are_refused(self) -> None:
        self.call([announced(1, 4, 1)], 1, True, b"a")
        for id, size in ((2, 1), (1, 4), (1, 0)):
            with self.subTest((id, size)):
                with self.assertRaises(ProtocolError):
                    self.arriving.room(id, size)

    def test_a_second_end_of_a_batch_is_refused(self) -> None:
        self.call([announced(1, 4, 1)], 1, True, b"a")
        with self.assertRaises(ProtocolError):
            self.call([announced(2, 0, 0)], 1, True)


if __name__ == "__main__":
    unittest.main()
