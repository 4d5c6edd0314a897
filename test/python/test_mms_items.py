"""Bodies to items of a custom service, and results to the bytes of answers."""

import unittest
from typing import Any

from mms_support import call_of

from banana_worker.formats.mms import read_item, write_result
from banana_worker.protocol.errors import ServeError

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"


def part(head: str, content: str) -> str:
    return f"--x\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n"


def item_of(body: bytes, content_type: str = "", raw: bool = False, **fields: Any) -> Any:
    return read_item(body, call_of(content_type, **fields), raw).item


class ReadTest(unittest.TestCase):
    def test_the_type_of_a_field_decides_how_it_is_decoded(self) -> None:
        for content_type, body, value in (
            ("application/json; charset=utf-8", b'{"x": [1, 12345678901234567890]}', {"x": [1, 12345678901234567890]}),
            ("text/csv", "ü".encode(), "ü"),
            ("image/png", b"\xff", bytearray(b"\xff")),
            ("", b"{}", bytearray(b"{}")),
            ("application/vnd.cats+json", b"{}", bytearray(b"{}")),
        ):
            with self.subTest(content_type):
                self.assertEqual(item_of(body, content_type), {"body": value})
        self.assertIs(type(item_of(b"x")["body"]), bytearray)

    def test_an_empty_body_is_a_value_too(self) -> None:
        self.assertEqual(item_of(b"", "text/plain"), {"body": ""})
        self.assertEqual(item_of(b"", "image/png"), {"body": bytearray()})
        with self.assertRaisesRegex(ServeError, "^The body is not valid JSON: "):
            item_of(b"", "application/json")

    def test_the_format_that_a_dialect_fixes_goes_before_the_content_type(self) -> None:
        self.assertEqual(item_of(b'{"a": 1}', "text/plain", format="json"), {"body": {"a": 1}})
        self.assertEqual(item_of(b"", "text/plain", format="json"), {"body": None})
        self.assertEqual(item_of(b"x", "text/plain", format="bytes"), {"body": bytearray(b"x")})
        self.assertEqual(item_of(b"\x80", "application/json", format="msgpack"), {"body": bytearray(b"\x80")})

    def test_fields_of_forms_and_of_the_query_are_bytes_and_the_last_of_a_name_counts(self) -> None:
        self.assertEqual(
            item_of(b"a=2&b=%C3%BC+x&__proto__=4", FORM, params="a=1&q=%32"),
            {"a": bytearray(b"2"), "q": bytearray(b"2"), "b": bytearray("ü x".encode()), "__proto__": bytearray(b"4")},
        )
        self.assertEqual(item_of(b"3", "application/json", params="body=1"), {"body": 3})

    def test_parts_have_their_own_types_and_get_parts_returns_all(self) -> None:
        body = (
            part('name="a"', "1")
            + part('name="a"; filename="x.png"\r\nContent-Type: image/png', "2")
            + part('name="j"\r\nContent-Type: application/json; charset=utf-8', "[1]")
            + "--x--"
        ).encode()
        found = read_item(body, call_of(MULTIPART))
        self.assertEqual(found.item, {"a": bytearray(b"2"), "j": [1]})
        self.assertEqual(
            [tuple(one) for one in found.parts],
            [
                ("a", None, "", b"1"),
                ("a", "x.png", "image/png", b"2"),
                ("j", None, "application/json", b"[1]"),
            ],
        )
        self.assertEqual(found.field_types(), {"a": "image/png", "j": "application/json"})

    def test_a_service_that_reads_bodies_itself_gets_bytes_only(self) -> None:
        for content_type in ("application/json", "text/plain", ""):
            self.assertEqual(item_of(b"{\xff", content_type, raw=True), {"body": bytearray(b"{\xff")})
        self.assertEqual(item_of(b"", "", raw=True, format="json"), {"body": bytearray()})

    def test_a_malformed_body_is_a_client_error_that_names_the_place(self) -> None:
        broken_part = (part('name="j"\r\nContent-Type: application/json', "[") + "--x--").encode()
        for content_type, body, message in (
            ("application/json", b"{", "^The body is not valid JSON: "),
            ("text/plain", b"\xff", "^The body is not text in UTF-8.$"),
            (MULTIPART, broken_part, '^The field "j" is not valid JSON: '),
            (MULTIPART, b"--x", "^The multipart body could not be read: Unexpected end of multipart data.$"),
            ("multipart/form-data", b"", "^The multipart body could not be read: its content type has no boundary"),
        ):
            with self.subTest(message), self.assertRaisesRegex(ServeError, message) as raised:
                item_of(body, content_type)
            self.assertEqual((raised.exception.code, raised.exception.kind), ("SERVE_BAD_BODY", "input"))


class WriteTest(unittest.TestCase):
    def test_bytes_and_text_stay_and_other_values_become_indented_json(self) -> None:
        for value, content_type, body in (
            (b"\x01", "application/octet-stream", b"\x01"),
            (bytearray(b"\x02"), "application/octet-stream", b"\x02"),
            ("ü", "text/plain; charset=utf-8", "ü".encode()),
            ({"a": [1]}, "application/json", b'{\n  "a": [\n    1\n  ]\n}'),
            (None, "application/json", b"null"),
            (float("nan"), "application/json", b"null"),
        ):
            with self.subTest(repr(value)):
                self.assertEqual(write_result(value, call_of(accept="application/msgpack")), (content_type, body))

    def test_bytes_inside_a_value_fail_it_and_the_log_has_their_place(self) -> None:
        for value in (b"\x01", bytearray(b"\x01"), memoryview(b"\x01")):
            with self.assertRaises(ServeError) as raised:
                write_result({"a": [1, {"b": value}]}, call_of())
            self.assertEqual(raised.exception.message, "Unsupported model output data type.")
            self.assertIn('output["a"][1]["b"] is bytes; return text', raised.exception.detail)

    def test_a_value_that_is_not_data_fails_with_the_message_of_multi_model_server(self) -> None:
        with self.assertRaises(ServeError) as raised:
            write_result({"a": [object()]}, call_of())
        error = raised.exception
        self.assertEqual((error.code, error.message), ("SERVE_OUTPUT_INVALID", "Unsupported model output data type."))
        self.assertRegex(error.detail, r'output\["a"\]\[0\]')


if __name__ == "__main__":
    unittest.main()
