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

    def test_a_call_of_one_frame_is_handed_over_at_once(self) -> None:
        self.call([announced(1, 2, 2)], 1, True, b"ab")
        self.assertEqual(self.batches, [[(1, b"ab")]])

    def test_the_calls_of_a_frame_get_their_own_bodies(self) -> None:
        self.call([announced(1, 2, 2), announced(2, 0, 0), announced(3, 1, 1)], 1, True, b"abc")
        self.assertEqual(self.batches, [[(1, b"ab"), (2, b""), (3, b"c")]])

    def test_a_batch_waits_for_its_last_frame_which_may_hold_no_call(self) -> None:
        self.call([announced(1, 1, 1)], 7, False, b"a")
        self.assertEqual(self.batches, [])
        self.call([], 7, True)
        self.assertEqual(self.batches, [[(1, b"a")]])

    def test_fragments_of_several_bodies_may_mix(self) -> None:
        self.call([announced(1, 4, 1)], 1, True, b"a")
        self.call([announced(2, 3, 0)], 2, True)
        self.arriving.take_body(2, b"xy")
        self.arriving.take_body(1, b"bcd")
        self.arriving.take_body(2, b"z")
        self.assertEqual(self.batches, [[(1, b"abcd")], [(2, b"xyz")]])

    def test_a_fragment_that_was_read_into_its_place_becomes_bytes(self) -> None:
        self.call([announced(1, 6, 2)], 1, True, b"ab")
        for part in (b"cd", b"ef"):
            room = self.arriving.room(1, 2)
            room[:] = part
            self.arriving.take_body(1, room)
        self.assertEqual(self.batches, [[(1, b"abcdef")]])
        self.assertIs(type(self.batches[0][0][1]), bytes)

    def test_a_cancelled_call_is_no_longer_part_of_its_batch(self) -> None:
        self.call([announced(1, 1, 1), announced(2, 9, 0)], 1, True, b"a")
        self.assertEqual(self.batches, [])
        self.assertTrue(self.arriving.drop(2))
        self.assertEqual(self.batches, [[(1, b"a")]])
        self.assertFalse(self.arriving.drop(2))

    def test_a_batch_whose_calls_are_all_cancelled_is_over(self) -> None:
        self.call([announced(1, 9, 0)], 1, False)
        self.assertTrue(self.arriving.drop(1))
        self.call([], 1, True)
        self.call([announced(2, 0, 0)], 1, True)
        self.assertEqual(self.batches, [[(2, b"")]])

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
