"""Frames and their heads, compared with the golden ones that every language reads, and tried with hostile bytes."""

from __future__ import annotations

import json
import os
import random
import select
import struct
import unittest
from typing import Any, List, Tuple

from banana_worker.process.channel import frame
from banana_worker.protocol.codec import decode_head, encode_head, read_call, read_start, result_head, uint
from banana_worker.protocol.errors import ProtocolError
from banana_worker.protocol.frame import FrameReader
from banana_worker.protocol.msgpack import write_value
from banana_worker.protocol.tables import MAX_FRAGMENT_BYTES, MAX_HEAD_BYTES

_FILE = os.path.join(os.path.dirname(__file__), "..", "fixtures", "frames", "golden.json")
with open(_FILE, encoding="utf-8") as _golden:
    GOLDEN = [(one, bytes.fromhex(one["frame"]), bytes.fromhex(one["body"])) for one in json.load(_golden)]

# Messages whose fields are read into records.
RECORDS = ("call", "start", "loaded", "metrics")


def as_rows(value: Any) -> Any:
    """A value of a message as the wire has it: its records are rows."""
    if isinstance(value, dict):
        return list(value.values())
    return [as_rows(item) for item in value] if isinstance(value, list) else value


def head_of(whole: bytes) -> bytes:
    return whole[8 : 8 + struct.unpack_from("<I", whole)[0]]


class Reading:
    """A pipe, and the messages that its reader has found in it."""

    def __init__(self) -> None:
        self.out, self.inlet = os.pipe()
        self.frames: List[Tuple[List[Any], bytes]] = []
        self.reader = FrameReader(self.out, self._take, lambda fields, size: memoryview(bytearray(size)))

    def _take(self, fields: List[Any], body: Any) -> None:
        self.frames.append((fields, bytes(body)))

    def feed(self, data: bytes) -> None:
        os.write(self.inlet, data)
        while select.select([self.out], [], [], 0)[0]:
            self.reader.read()

    def close(self) -> None:
        os.close(self.out)
        os.close(self.inlet)


class GoldenFrames(unittest.TestCase):
    def test_every_golden_head_is_read_as_in_the_file(self) -> None:
        for one, whole, _ in GOLDEN:
            message = one["message"]
            if message["type"] in RECORDS:
                continue
            with self.subTest(one["name"]):
                fields = decode_head(head_of(whole))
                # Optional fields are left out at the end of a head.
                self.assertEqual(fields, [as_rows(value) for value in message.values()][: len(fields)])

    def test_calls_and_starts_are_read_field_by_field(self) -> None:
        for one, whole, _ in GOLDEN:
            message, fields = one["message"], decode_head(head_of(whole))
            with self.subTest(one["name"]):
                if message["type"] == "call":
                    self.assertEqual(fields[2:4], [message["batch"], message["last"]])
                    self.check_calls([read_call(call) for call in fields[1]], message)
                elif message["type"] == "start":
                    self.check_start(read_start(fields[1]), message["spec"])

    def check_calls(self, calls: List[Any], message: Any) -> None:
        self.assertEqual([call.inline_bytes for call in calls], message["inlineBytes"])
        for call, meant in zip(calls, message["calls"]):
            names = "id bodyBytes requestId route path query format contentType accept deadlineMs headers"
            names += " method params asciiJson"
            for name in names.split():
                snake = "".join("_" + char.lower() if char.isupper() else char for char in name)
                self.assertEqual(getattr(call, snake), meant[name], name)
            job = meant.get("job", {"id": "", "attempt": 0})
            self.assertEqual((call.job_id, call.job_attempt), (job["id"], job["attempt"]))

    def check_start(self, spec: Any, meant: Any) -> None:
        self.assertEqual((spec.app, spec.model, spec.version), (meant["app"], meant["model"], meant["version"]))
        self.assertEqual((spec.gpu, spec.threads), (meant["device"]["gpu"], meant["device"]["threads"]))
        self.assertEqual(spec.max_output_bytes, meant["limits"]["maxOutputBytes"])
        self.assertEqual(spec.app_place, meant.get("appPlace", ""))
        self.assertEqual(spec.batch_size, meant.get("batchSize", 0))
        service = meant.get("service")
        self.assertEqual(spec.service, service and (service["handler"], service["modelDir"]))

    def test_written_heads_are_read_back_unchanged(self) -> None:
        for one, whole, _ in GOLDEN:
            fields = decode_head(head_of(whole))
            with self.subTest(one["name"]):
                self.assertEqual(decode_head(encode_head(fields)), fields)

    def test_result_head_equals_encode_head(self) -> None:
        for one, whole, _ in GOLDEN:
            if one["message"]["type"] == "result":
                fields = decode_head(head_of(whole))
                args = (fields[1:] + [""])[:7]
                self.assertEqual(decode_head(result_head(*args)), fields)

    def test_the_head_of_a_result_is_no_longer_than_the_front_takes(self) -> None:
        with self.assertRaises(ValueError):
            result_head(1, 200, "a" * MAX_HEAD_BYTES, "", 0, 1.5, "")

    def test_frames_may_come_in_any_split(self) -> None:
        stream = b"".join(whole for _, whole, _ in GOLDEN)
        expected = [(decode_head(head_of(whole)), body) for _, whole, body in GOLDEN]
        for size in (1, 2, 3, 7, 64, len(stream)):
            with self.subTest(size):
                reading = Reading()
                for at in range(0, len(stream), size):
                    reading.feed(stream[at : at + size])
                self.assertEqual(reading.frames, expected)
                reading.close()


class LongFrames(unittest.TestCase):
    def test_long_bodies_and_heads_arrive_whole_between_short_frames(self) -> None:
        random.seed(7)
        frames = []
        for size in (0, 1, 65_527, 65_536, 70_000, MAX_FRAGMENT_BYTES, 3):
            frames.append((["body", size], os.urandom(size)))
        frames.append((["log", "info", "x" * 200_000, "", ""], b""))
        frames.append((["chunk", 1], b"after"))
        stream = b"".join(frame(encode_head(fields), body) for fields, body in frames)
        reading = Reading()
        at = 0
        while at < len(stream):
            size = random.choice((1, 9, 4_000, 40_000))
            reading.feed(stream[at : at + size])
            at += size
        self.assertEqual(reading.frames, frames)
        reading.close()

    def test_the_end_of_the_stream_is_reported(self) -> None:
        reading = Reading()
        os.close(reading.inlet)
        self.assertFalse(reading.reader.read())
        os.close(reading.out)


class HostileFrames(unittest.TestCase):
    def test_lengths_over_the_limits_are_refused_before_memory_is_taken(self) -> None:
        for head, body in ((0, 0), (MAX_HEAD_BYTES + 1, 0), (2**32 - 1, 0), (5, MAX_FRAGMENT_BYTES + 1)):
            with self.subTest((head, body)):
                reading = Reading()
                with self.assertRaises(ProtocolError):
                    reading.feed(struct.pack("<II", head, body))
                reading.close()

    def test_heads_that_are_not_messages_are_refused(self) -> None:
        deep = b"\x91" * 5_000 + b"\xc0"
        for head in (
            b"\xc1",
            b"\x91",
            b"\x80",
            b"\x90",
            b"\x91\x01",
            b"\x91\xa5abc",
            b"\x92\xa1a\xdb\xff\xff\xff\xffxx",
            b"\x92\xa1a\xdd\xff\xff\xff\xff\xc0",
            b"\x92\xa1a\xdf\xff\xff\xff\xff",
            b"\x91\xa1a\x00",
            b"\x92\xa1a\xd4\x00\x00",
            b"\x92\xa1a\x81\x90\x01",
            deep,
        ):
            with self.subTest(head[:12]):
                with self.assertRaises(ProtocolError):
                    decode_head(head)

    def test_heads_cut_anywhere_are_refused(self) -> None:
        for one, whole, _ in GOLDEN:
            head = head_of(whole)
            for end in range(len(head)):
                with self.subTest((one["name"], end)):
                    with self.assertRaises(ProtocolError):
                        decode_head(head[:end])

    def test_random_heads_raise_only_protocol_errors(self) -> None:
        random.seed(11)
        for _ in range(5000):
            head = bytes(random.randrange(256) for _ in range(random.randrange(1, 24)))
            try:
                decode_head(b"\x95\xa4call" + head)
            except ProtocolError:
                pass


class Numbers(unittest.TestCase):
    def test_a_whole_number_is_read_in_every_encoding(self) -> None:
        for packed, value in (
            (b"\x07", 7),
            (b"\xff", -1),
            (b"\xcc\xff", 255),
            (b"\xcd\xff\xff", 65_535),
            (b"\xce\xff\xff\xff\xff", 4_294_967_295),
            (b"\xcf\x00\x1f\xff\xff\xff\xff\xff\xff", 2**53 - 1),
            (b"\xd0\x80", -128),
            (b"\xd1\x80\x00", -32_768),
            (b"\xd2\x80\x00\x00\x00", -(2**31)),
            (b"\xd3\xff\xff\xff\xff\xff\xff\xff\xfe", -2),
            (b"\xca\x4b\x80\x00\x00", 2**24),
            (b"\xcb\x41\xf0\x00\x00\x00\x00\x00\x00", 2**32),
        ):
            with self.subTest(packed):
                self.assertEqual(decode_head(b"\x92\xa1a" + packed)[1], value)

    def test_ids_come_as_floats_too(self) -> None:
        fields: List[Any] = [4294967295.0, 3.0, 3.0, "r", "/", "/", "", "auto", "", "", None, ""]
        call = read_call(fields)
        self.assertEqual([call.id, call.body_bytes, call.inline_bytes], [4294967295, 3, 3])
        self.assertIs(type(call.id), int)

    def test_values_that_are_not_whole_numbers_are_refused(self) -> None:
        for value in (-1, 1.5, 2.0**54, float("nan"), float("inf"), "1", None):
            with self.subTest(value):
                with self.assertRaises(ProtocolError):
                    uint(value)

    def test_numbers_of_all_sizes_survive(self) -> None:
        for value in (0, 127, 128, 65_535, 65_536, 2**32 - 1, 2**32, 2**53, 2**64 - 1, -1, -(2**63), 0.5, True, None):
            with self.subTest(value):
                self.assertEqual(decode_head(b"\x92\xa1a" + write_value(value))[1], value)
        self.assertEqual(decode_head(b"\x92\xa1a" + write_value(2**70))[1], float(2**70))

    def test_half_a_surrogate_pair_does_not_break_a_message(self) -> None:
        self.assertEqual(decode_head(encode_head(["log", "a\ud800b"])), ["log", "a?b"])

    def test_the_name_of_a_file_that_is_not_utf_8_can_stand_in_a_header(self) -> None:
        """`os.listdir` gives halves of surrogate pairs for its bytes; HTTP's headers hold no character beyond Latin-1."""
        headers = "Content-Disposition\nattachment; filename=%s" % b"caf\xe9".decode("utf-8", "surrogateescape")
        answered = decode_head(result_head(1, 200, "image/png", headers, 0, 1.5, ""))
        streamed = decode_head(encode_head(["head", 1, 200, "image/png", headers, ""]))
        self.assertEqual((answered[4], streamed[4]), (headers.replace("\udce9", "?"),) * 2)


if __name__ == "__main__":
    unittest.main()
