"""Values of programs: arrays stay arrays, on the way to the app and back."""

from __future__ import annotations

import unittest
from typing import Any

from banana_worker.formats.msgpack_values import Exchange
from banana_worker.formats.reply import BytesBody, JsonBody, Reply, ReplyHead, StreamBody, ValueBody
from banana_worker.protocol.errors import ServeError
from banana_worker.values.tensor import Tensor
from calls import call_with

try:
    import numpy  # pyright: ignore[reportMissingImports]
except ImportError:
    numpy = None

EXCHANGE = Exchange(call_with())


def written(body: Any, **head: Any) -> bytes:
    reply = EXCHANGE.write(Reply(ReplyHead(**head), body))
    assert isinstance(reply.body, BytesBody)
    return reply.body.data


class ProgramValues(unittest.TestCase):
    def test_tensors_come_back(self) -> None:
        for tensor in (
            Tensor("BF16", (1, 2), b"abcd"),
            Tensor("BF16", (0,), b""),
        ):
            self.assertEqual(EXCHANGE.read(written(ValueBody(tensor))), tensor)

    @unittest.skipIf(numpy is None, "needs numpy")
    def test_arrays_come_back_and_may_be_written_to(self) -> None:
        numpy: Any = globals()["numpy"]
        for array in (
            numpy.arange(3, dtype="float32"),
            numpy.arange(6, dtype=">i2").reshape(2, 3),
            numpy.arange(8)[::2],
            numpy.zeros((0, 2), dtype="bool"),
        ):
            back: Any = EXCHANGE.read(written(ValueBody({"a": [array]})))
            self.assertEqual((back["a"][0].shape, back["a"][0].tolist()), (array.shape, array.tolist()))
            back["a"][0][:] = 0

    def test_an_array_without_a_datatype_is_a_list(self) -> None:
        if numpy is not None:
            times = numpy.array(["2020-01-01"], dtype="datetime64[D]")
            self.assertEqual(EXCHANGE.read(written(ValueBody(times))), ["2020-01-01"])

    def test_whole_answers_are_values(self) -> None:
        for body, content_type, value in (
            (JsonBody({"a": 1}), "", {"a": 1}),
            (BytesBody(b'{"a":1}'), "application/json", {"a": 1}),
            (BytesBody("é".encode()), "text/plain", "é"),
            (BytesBody(b"\xff"), "application/octet-stream", b"\xff"),
        ):
            self.assertEqual(EXCHANGE.read(written(body, content_type=content_type)), value)

    def test_an_error_of_the_app_is_one(self) -> None:
        for body, text in (
            (JsonBody({"error": {"message": "too long"}}), "too long"),
            (StreamBody(iter(())), ""),
        ):
            with self.assertRaises(ServeError) as raised:
                written(body, status=422)
            self.assertEqual((raised.exception.code, raised.exception.status), ("SERVE_HTTP_ERROR", 422))
            if text:
                self.assertEqual(raised.exception.message, text)

    def test_bytes_that_are_no_value_are_refused(self) -> None:
        for text in ("", "c1", "d40500", "c70901a44650333291020000"):
            with self.assertRaises(ServeError) as raised:
                EXCHANGE.read(bytes.fromhex(text))
            self.assertEqual(raised.exception.code, "SERVE_BAD_BODY")


if __name__ == "__main__":
    unittest.main()
