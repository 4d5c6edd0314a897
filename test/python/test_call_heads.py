"""Heads of calls, one after the other, compared with the same heads read on their own."""

from __future__ import annotations

import json
import os
import random
import struct
import unittest
from typing import Any, List
from unittest import mock

from banana_worker.protocol.call_heads import CallHeads
from banana_worker.protocol.codec import decode_head, read_call
from banana_worker.protocol.msgpack import write_value
from banana_worker.protocol.errors import ProtocolError

_FILE = os.path.join(os.path.dirname(__file__), "..", "fixtures", "frames", "golden.json")
with open(_FILE, encoding="utf-8") as _golden:
    FRAMES = [bytes.fromhex(one["frame"]) for one in json.load(_golden)]
HEADS = [whole[8 : 8 + struct.unpack_from("<I", whole)[0]] for whole in FRAMES]

CALL: List[Any] = [7, 18, 18, "r1", "/", "/", "", "auto", "application/json", "*/*", None, "host\nlocalhost"]

# Values for the fields of consecutive calls; some take more bytes than others.
CHOICES: List[List[Any]] = [
    [1, 200, 70_000, 2**33],
    [18, 19, 300, 0],
    [18, 300, 0],
    ["r1", "r2", "r" * 40, "\u00e9"],
    ["/", "/other"],
    ["/", "/%20"],
    ["", "a=1"],
    ["auto", "json"],
    ["application/json", "", "x" * 300],
    ["*/*", ""],
    [None, 1.5e12, 1],
    ["host\nlocalhost", "", "n" * 40, "n\nv" * 100],
    ["POST", "GET"],
    ["", "name=value"],
    [True, False],
]


def packed(value: Any) -> bytes:
    """Lists as the front writes them: short ones have their length in their first byte."""
    if isinstance(value, list) and len(value) < 16:
        return bytes((0x90 | len(value),)) + b"".join(map(packed, value))
    return write_value(value)


def head_of(call: List[Any], batch: int = 1, last: bool = True) -> bytes:
    return packed(["call", [call], batch, last])


def alone(head: bytes) -> List[Any]:
    """The head, read without those before it."""
    fields = decode_head(head)
    if fields[0] == "call":
        fields[1] = [read_call(call) for call in fields[1]]
    return fields


class HeadsOfCalls(unittest.TestCase):
    def setUp(self) -> None:
        self.heads = CallHeads()

    def test_golden_heads_are_read_the_same_in_any_order(self) -> None:
        random.seed(5)
        for head in random.sample(HEADS * 5, len(HEADS) * 5):
            with self.subTest(head[:60]):
                self.assertEqual(self.heads.decode(head), alone(head))

    def test_a_call_alone_in_its_frame_is_read_in_one_step_once_two_of_its_length_have_come(self) -> None:
        ones = [head for head in HEADS if head.startswith(packed(["call", [], 1, True])[:6] + b"\x91")]
        self.assertGreater(len(ones), 0)
        for head in ones:
            self.heads.decode(head)
            self.heads.decode(head)
        with mock.patch("banana_worker.protocol.call_heads.decode_head", side_effect=AssertionError):
            for head in ones:
                self.assertEqual(self.heads.decode(head), alone(head))

    def test_small_and_large_numbers_a_deadline_and_other_texts_of_the_same_length_are_read_in_one_step(self) -> None:
        for before, after in (
            (CALL, [9, 127, 0, "r2", "/", "/", "", "auto", "application/json", "*/*", None, "host\nlocal-two"]),
            ([70_000, 200, 200, *CALL[3:]], [80_000, 255, 128, *CALL[3:]]),
            ([*CALL[:10], 1.5e12, CALL[11]], [*CALL[:10], 1.75e12, CALL[11]]),
            ([*CALL, "GET", "a=1", True], [8, *CALL[1:], "GET", "a=1", True]),
            ([*CALL[:4], "/a", "/a", *CALL[6:]], [*CALL[:4], "/", "/", "b=", *CALL[7:]]),
        ):
            with self.subTest(after):
                heads = CallHeads()
                heads.decode(head_of(before))
                heads.decode(head_of(before))
                with mock.patch("banana_worker.protocol.call_heads.decode_head", side_effect=AssertionError):
                    read = heads.decode(head_of(after))
                self.assertEqual(read, alone(head_of(after)))

    def test_heads_of_very_many_lengths_are_read_and_not_all_kept(self) -> None:
        for size in range(1000):
            head = head_of([*CALL[:11], "n" * size])
            for _ in range(3):
                self.assertEqual(self.heads.decode(head), alone(head))
        self.assertLess(len(self.heads._shapes), 100)

    def test_calls_that_differ_anywhere_from_the_one_before_are_read_as_they_are(self) -> None:
        random.seed(6)
        call = list(CALL)
        for _ in range(2000):
            for place in random.sample(range(len(CHOICES)), 2):
                call[place : place + 1] = [random.choice(CHOICES[place])] if place < len(call) else []
            sent = call + [random.choice(choices) for choices in CHOICES[12 : random.randrange(12, 16)]]
            head = head_of(sent, random.randrange(500), random.random() < 0.5)
            self.assertEqual(self.heads.decode(head), alone(head))

    def test_missing_fields_are_not_taken_from_the_call_before(self) -> None:
        self.heads.decode(head_of([*CALL, "GET", "a=1", True]))
        call = self.heads.decode(head_of(CALL))[1][0]
        self.assertEqual((call.method, call.params, call.ascii_json), ("POST", "", False))

    def test_a_head_that_is_cut_is_refused_after_a_whole_one(self) -> None:
        head = head_of(CALL)
        self.heads.decode(head)
        self.heads.decode(head)
        for end in range(len(head)):
            with self.subTest(end):
                with self.assertRaises(ProtocolError):
                    self.heads.decode(head[:end])
        self.assertEqual(self.heads.decode(head), alone(head))

    def test_a_cut_head_does_not_change_how_the_next_is_read(self) -> None:
        head = head_of([*CALL[:11], "a" * 20])
        cut = head[: head.index(b"aaaa") + 4]
        with self.assertRaises(ProtocolError):
            self.heads.decode(cut)
        self.assertEqual(self.heads.decode(head), alone(head))

    def test_a_call_with_a_number_in_place_of_a_text_is_refused(self) -> None:
        for place in (3, 4, 7, 8, 11):
            with self.subTest(place):
                with self.assertRaises(ProtocolError):
                    self.heads.decode(head_of(CALL[:place] + [5] + CALL[place + 1 :]))

    def test_a_call_with_missing_fields_is_refused(self) -> None:
        for fields in (["call"], ["call", 5, 1, True], ["call", [CALL], 1], ["call", [[1, 2]], 1, True]):
            with self.subTest(fields):
                with self.assertRaises(ProtocolError):
                    self.heads.decode(packed(fields))

    @unittest.skipIf("BANANA_TEST_OTHER_PYTHON" in os.environ, "slow, and the same in every Python; python3 runs it")
    def test_random_bytes_in_a_head_are_read_as_they_are_or_refused(self) -> None:
        random.seed(7)
        for call in (CALL, [70_000, 200, 300, *CALL[3:10], 1.5e12, "n" * 300, "GET", "", False]):
            head = head_of(call)
            for _ in range(3000):
                place = random.randrange(len(head))
                changed = head[:place] + bytes((random.randrange(256),)) + head[place + 1 :]
                self.heads.decode(head)
                self.heads.decode(head)
                self.assertEqual(outcome(self.heads.decode, changed), outcome(alone, changed), changed)


def outcome(read: Any, head: bytes) -> str:
    """The result as text, in which NaN equals NaN."""
    try:
        return repr(read(head))
    except (ProtocolError, IndexError, TypeError):
        return "refused"


if __name__ == "__main__":
    unittest.main()
