"""Inputs of apps by body and content type. The rows are those of test/worker/formats/*.test.ts, where both languages
agree."""

import datetime
import encodings
import os
import random
import struct
import sys
import unittest
from types import SimpleNamespace

from banana_worker.formats import LOADED_FORMATS
from banana_worker.formats.form import form_pairs
from banana_worker.formats.read_input import InputWishes, format_of, input_wishes, read_input
from banana_worker.protocol.errors import ServeError
from banana_worker.text.charsets import decode_text
from calls import call_with

FORM = "application/x-www-form-urlencoded"
WISHES = InputWishes(forms=True, text=True)
MULTIPART = "multipart/form-data; boundary=xx"


def part(headers, content):
    return b"--xx\r\n" + headers.encode() + b"\r\n\r\n" + content + b"\r\n"


def field(name, value):
    return part('content-disposition: form-data; name="%s"' % name, value.encode())


def file(name, filename, content):
    head = 'content-disposition: form-data; name="%s"; filename="%s"\r\ncontent-type: text/csv' % (name, filename)
    return part(head, content)


def form(*parts):
    return b"".join(parts) + b"--xx--\r\n"


class Inputs(unittest.TestCase):
    def refused(self, said, body, wishes=InputWishes(), **fields):
        with self.assertRaises(ServeError) as raised:
            read_input(call_with(**fields), body, wishes)
        self.assertEqual(raised.exception.code, "SERVE_BAD_BODY")
        self.assertRegex(raised.exception.message, said)


class Formats(Inputs):
    def test_a_call_in_a_format_that_this_worker_does_not_have_is_refused(self):
        for name in ("none", "fields", "json.decoder", "../main", "JSON", ""):
            with self.subTest(name):
                self.refused("The worker of this model does not have the format", b"1", format=name)


class Refusals(Inputs):
    def test_a_format_may_refuse_a_body_with_any_code_and_status(self):
        self.raised_by(ServeError("SERVE_BAD_REQUEST", "Not this one.", status=422, kind="input"))
        self.assertEqual((self.error.code, self.error.message), ("SERVE_BAD_BODY", "Not this one."))
        self.assertEqual((self.error.status, self.error.kind), (422, "input"))

    def test_a_refusal_in_the_apps_name_stays_what_it_is(self):
        refusal = ServeError("SERVE_HTTP_ERROR", "No.", status=409)
        self.raised_by(refusal)
        self.assertIs(self.error, refusal)

    def raised_by(self, error):
        def read(body, call):
            raise error

        LOADED_FORMATS["refuses"] = SimpleNamespace(read=read)
        self.addCleanup(LOADED_FORMATS.pop, "refuses")
        with self.assertRaises(ServeError) as raised:
            read_input(call_with(format="refuses"), b"x")
        self.error = raised.exception


class SpaceInJson(Inputs):
    def test_space_around_a_value_is_ignored(self):
        for body, value in (
            (b' \r\n\t{"a": 1}\n \t\r', {"a": 1}),
            (b"[1]\n", [1]),
            (b" 5 ", 5),
            (b'"x"\n', "x"),
            (b"\xef\xbb\xbf {}", {}),
        ):
            with self.subTest(body):
                self.assertEqual(read_input(call_with(), body), value)

    def test_text_behind_a_value_is_refused(self):
        for body in (b"{}{}", b"[1] 2", b"{}\x0c", b"[] \xc2\xa0", b"1 2"):
            with self.subTest(body):
                self.refused("not valid JSON: Extra data", body)


class ChoiceOfFormat(Inputs):
    def test_the_content_type_decides_how_a_body_is_read(self):
        for content_type, name in (
            ("", "json"),
            ("application/json", "json"),
            ("application/json; charset=utf-8", "json"),
            ("Application/JSON", "json"),
            (" application/json ;x=y", "json"),
            ("application/vnd.api+json", "json"),
            ("text/plain", "json"),
            (FORM, "json"),
            ("application/msgpack", "msgpack"),
            ("application/x-msgpack", "msgpack"),
            ("application/vnd.msgpack", "msgpack"),
            ("multipart/form-data; boundary=x", "multipart"),
            ("application/octet-stream", "bytes"),
            ("image/png", "bytes"),
            ("multipart/mixed; boundary=x", "bytes"),
            ("nonsense", "bytes"),
        ):
            with self.subTest(content_type):
                self.assertEqual(format_of(content_type), name)

    def test_an_empty_body_is_none_in_every_format(self):
        for name in ("auto", "json", "msgpack", "multipart", "bytes", "websocket"):
            self.assertIsNone(read_input(call_with(format=name), b""))

    def test_a_format_that_the_dialect_fixed_wins_over_the_content_type(self):
        body = bytes.fromhex("81a16101")
        fixed = call_with(format="msgpack", content_type="application/json")
        self.assertEqual(read_input(fixed, body), {"a": 1})
        self.assertEqual(read_input(call_with(format="bytes", content_type="application/json"), body), body)

    def test_a_form_or_a_text_is_refused_with_the_option_that_accepts_it(self):
        self.refused(r'not valid JSON.*\. .*"forms": True', b"a=1", content_type=FORM)
        self.refused(r'not valid JSON.*\. .*"text": True', b"hello", content_type="text/plain; charset=utf-8")
        self.refused(r"^(?!.*text).*$", b"x", format="json", content_type="text/plain")

    def test_wishes_must_be_true_or_false(self):
        self.assertEqual(input_wishes({"forms": True}, "config"), InputWishes(forms=True))
        with self.assertRaisesRegex(TypeError, "config: text must be True or False"):
            input_wishes({"text": "yes"}, "config")


class Json(Inputs):
    def test_json_becomes_pythons_own_values_and_integers_are_exact_at_any_size(self):
        for body, value in (
            (b'{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}),
            (b"9007199254740993", 2**53 + 1),
            (b"-123456789012345678901234567890", -123456789012345678901234567890),
            (b"\xef\xbb\xbf1", 1),
            ('"\u00fc\U0001f34c"'.encode(), "\u00fc\U0001f34c"),
            (b'"\\ud83c"', "\ud83c"),
            (b"1e999", float("inf")),
        ):
            with self.subTest(body):
                self.assertEqual(read_input(call_with(), body), value)

    def test_a_number_of_thousands_of_digits_is_refused_even_if_python_would_read_it(self):
        said = r"^The body is not valid JSON: it has a whole number of more than 4300 digits\.$"
        too_long = b"1" * 100_001
        self.refused(said, too_long)
        self.refused(said, b'{"n": [-%s]}' % too_long)
        if hasattr(sys, "get_int_max_str_digits"):
            self.refused(said, b"[%s]" % too_long[:4301])
            self.addCleanup(sys.set_int_max_str_digits, sys.get_int_max_str_digits())
            sys.set_int_max_str_digits(0)
        self.refused(said, too_long)

    def test_numbers_of_ordinary_length_are_never_too_many(self):
        ordinary = b",".join([b"7" * 4300] * 100)
        self.assertEqual(len(read_input(call_with(), b"[%s]" % ordinary)), 100)

    def test_a_body_that_is_not_json_is_refused_with_the_reason(self):
        for body, reason in (
            (b'{"a":1', r"Expecting ',' delimiter at line 1, column 7\.$"),
            (b"[NaN]", r"NaN is not JSON\.$"),
            (b"-Infinity", r"-Infinity is not JSON\.$"),
            (b'"\xff"', r"it is not UTF-8\.$"),
            (b"[" * 200_000, r"it is nested too deeply\.$"),
            (b"1 2", r"Extra data at line 1, column 3\.$"),
            (b'"a\nb"', r"Invalid control character at line 1, column 3"),
        ):
            with self.subTest(body[:20]):
                self.refused("^The body is not valid JSON: .*" + reason, body)

    def test_a_body_ends_no_process_whose_app_has_raised_the_recursion_limit(self):
        limit = sys.getrecursionlimit()
        self.addCleanup(sys.setrecursionlimit, limit)
        sys.setrecursionlimit(10**6)
        for deep in (b"[" * 200_000, b'{"a":' * 200_000, b'["\\\\", ["\\"", ' + b"[" * 200_000):
            self.refused(r"^The body is not valid JSON: it is nested too deeply\.$", deep)
        self.assertEqual(len(read_input(call_with(), b"[%s]" % b",".join([b'"]["', b"[{}]"] * 20_000))), 40_000)
        in_text = b'["' + b'\\"[{\\\\' * 20_000 + b'"]'
        self.assertEqual(read_input(call_with(), in_text), ['"[{\\' * 20_000])


class MessagePack(Inputs):
    def read(self, text):
        return read_input(call_with(format="msgpack"), bytes.fromhex(text))

    def test_values(self):
        for text, value in (
            ("c0", None),
            ("93c2c37f", [False, True, 127]),
            ("81a16101", {"a": 1}),
            ("e0", -32),
            ("d3001fffffffffffff", 2**53 - 1),
            ("d38000000000000000", -(2**63)),
            ("cfffffffffffffffff", 2**64 - 1),
            ("ca3fc00000", 1.5),
            ("cb3fb999999999999a", 0.1),
            ("a2c381", "\u00c1"),
            ("d90161", "a"),
            ("c4020102", b"\x01\x02"),
            ("dc000101", [1]),
            ("de0001a16101", {"a": 1}),
            ("d6ff00000001", datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc)),
            ("c70cff000003e8ffffffffffffffff", datetime.datetime(1969, 12, 31, 23, 59, 59, 1, datetime.timezone.utc)),
        ):
            with self.subTest(text):
                self.assertEqual(self.read(text), value)

    def test_hostile_bodies_are_refused_before_memory_is_taken(self):
        for what, text in (
            ("a cut string", "a5616263"),
            ("a map without its value", "81a161"),
            ("bytes after the value", "0101"),
            ("the byte that is never used", "81a16192c3c1"),
            ("an unknown extension", "d67f00000000"),
            ("a list longer than the body", "ddffffffff01"),
            ("a map longer than the body", "dfffffffff01"),
            ("a string longer than the body", "dbffffffff61"),
            ("nesting beyond the stack", "91" * 200_000),
            ("a timestamp of another length", "d5ff0000"),
            ("a timestamp beyond the year 9999", "c70cff000000007fffffffffffffff"),
        ):
            with self.subTest(what):
                self.refused("^The body is not valid MessagePack: ", bytes.fromhex(text), format="msgpack")

    def test_keys_of_a_map_are_text_or_converted_to_text(self):
        self.assertEqual(self.read("83a161010502c003"), {"a": 1, 5: 2, None: 3})
        for what, text in (
            ("a list", "819001"),
            ("a map", "818001"),
            ("bytes", "81c4016b01"),
            ("a timestamp", "81d6ff0000000101"),
            ("bytes, further inside", "9181a16181c4016b01"),
        ):
            with self.subTest(what):
                said = "^The body is not valid MessagePack: a key of a map is a list, a map, bytes or a timestamp.$"
                self.refused(said, bytes.fromhex(text), format="msgpack")

    def test_nan_is_refused_as_a_key(self):
        for not_a_number in ("ca7fc00000", "cb7ff8000000000000", "cbfff8000000000001"):
            said = r"^The body is not valid MessagePack: a key of a map is not a number \(NaN\).$"
            self.refused(said, bytes.fromhex("81" + not_a_number + "01"), format="msgpack")

    @unittest.skipIf("BANANA_TEST_OTHER_PYTHON" in os.environ, "slow, and the same in every Python; python3 runs it")
    def test_large_maps_have_at_most_100_000_number_keys(self):
        most = (
            b"\xdf" + struct.pack(">I", 100_000) + b"".join(struct.pack(">BIB", 0xCE, key, 1) for key in range(100_000))
        )
        more = b"\xde" + struct.pack(">H", 1001) + b"".join(b"\xa4%04d\x01" % key for key in range(1000))
        small = b"\xde" + struct.pack(">H", 1000) + b"".join(struct.pack(">BHB", 0xCD, key, 1) for key in range(1000))
        self.assertEqual(
            [len(read) for read in self.read((b"\x93" + most + small + small).hex())], [100_000, 1000, 1000]
        )
        self.assertEqual(len(self.read((b"\x92" + most + more + b"\xa4last\x01").hex())[1]), 1001)
        said = "^The body is not valid MessagePack: maps of more than 1000 keys have more than 100000 numbers as keys.$"
        self.refused(said, b"\x92" + most + more + b"\x07\x01", format="msgpack")

    def test_any_bytes_are_a_value_or_refused(self):
        numbers = random.Random(7)
        for _ in range(3000):
            body = bytes(numbers.randrange(256) for _ in range(numbers.randrange(1, 40)))
            try:
                read_input(call_with(format="msgpack"), body)
            except ServeError as error:
                self.assertEqual(error.code, "SERVE_BAD_BODY")


class Multipart(Inputs):
    def read(self, body, content_type=MULTIPART):
        return read_input(call_with(content_type=content_type), body)

    def test_fields_are_text_and_files_have_name_type_and_bytes(self):
        read = self.read(form(field("prompt", "h\u00e9llo"), file("data", "a.csv", b"1,2\r\n3")))
        data = read.pop("data")
        self.assertEqual(read, {"prompt": "h\u00e9llo"})
        self.assertEqual((data.filename, data.content_type, data.data), ("a.csv", "text/csv", b"1,2\r\n3"))
        self.assertEqual(repr(data), "UploadedFile('a.csv', 'text/csv', 6 bytes)")

    def test_a_part_without_a_file_name_is_bytes_unless_it_is_text_or_json(self):
        for kind in ("image/png", "application/octet-stream", "application/xml"):
            head = 'content-disposition: form-data; name="p"\r\ncontent-type: %s' % kind
            data = self.read(form(part(head, b"\x89P\xff\x00")))["p"]
            self.assertEqual((data.filename, data.content_type, data.data), ("", kind, b"\x89P\xff\x00"))
        for kind in ("text/csv; charset=utf-8", "Application/JSON", "application/ld+json"):
            head = 'content-disposition: form-data; name="p"\r\ncontent-type: %s' % kind
            self.assertEqual(self.read(form(part(head, b'{"a":1}'))), {"p": '{"a":1}'})

    def test_a_repeated_name_becomes_a_list_in_order(self):
        read = self.read(form(field("a", "1"), field("a", "2"), field("b", "x"), field("a", "3")))
        self.assertEqual(read, {"a": ["1", "2", "3"], "b": "x"})
        files = self.read(form(file("f", "1.csv", b"one"), file("f", "2.csv", b"")))["f"]
        self.assertEqual([(each.filename, each.data) for each in files], [("1.csv", b"one"), ("2.csv", b"")])

    def test_file_names_and_charsets_are_decoded(self):
        for given, filename in (
            ('filename="C:\\folder\\a.txt"', "a.txt"),
            ('filename="/etc/passwd"', "passwd"),
            ('filename=".."', ""),
            ('filename="a \\"quoted\\" name.txt"', 'a "quoted" name.txt'),
            ('filename="a;b=c.txt"', "a;b=c.txt"),
            ("filename=plain.txt", "plain.txt"),
            ('filename="b\u00fccher.txt"', "b\u00fccher.txt"),
            ("filename*=UTF-8''b%C3%BCcher.txt", "b\u00fccher.txt"),
            ("filename*=iso-8859-1'de'b%FCcher.txt; filename=\"other.txt\"", "b\u00fccher.txt"),
            ('FileName="a.txt"', "a.txt"),
        ):
            with self.subTest(given):
                read = self.read(form(part("Content-Disposition: form-data; name=f; " + given, b"x")))
                self.assertEqual(read["f"].filename, filename)
        latin = "content-disposition: form-data; name=a\r\ncontent-type: text/plain; charset=%s"
        self.assertEqual(self.read(form(part(latin % "iso-8859-1", b"\xfc\x80"))), {"a": "\u00fc\u20ac"})
        for charset in ("klingon", "punycode", "rot13", "unicode_escape"):
            body = form(part(latin % charset, b"x"))
            self.refused('the charset "%s" is not supported' % charset, body, content_type=MULTIPART)

    def test_a_malformed_body_is_refused_at_its_first_wrong_part(self):
        one = form(field("a", "1"))
        for body, content_type in (
            (one, "multipart/form-data"),
            (one, "multipart/form-data; boundary="),
            (one, "multipart/form-data; boundary=" + "x" * 71),
            (one, "multipart/form-data; boundary=yy"),
            (b"--xxy\r\n\r\n\r\n--xx--", MULTIPART),
            (b'{"a":1}', MULTIPART),
            (b"--xx\r\n" * 100_000 + b"--xx--", MULTIPART),
            (part("content-type: text/plain", b"x") * 100_000 + b"--xx--", MULTIPART),
            (form(part('content-disposition: form-data; name="a"\r\nx: ' + "y" * 20_000, b"1")), MULTIPART),
        ):
            self.refused("^The multipart body could not be read: ", body, content_type=content_type)


class FormsAndText(Inputs):
    def test_an_app_that_asks_for_them_gets_forms_and_text(self):
        for content_type, body, value in (
            (FORM, "a=1&b=x+y%20%C3%BC&a=2&c", {"a": ["1", "2"], "b": "x y \u00fc", "c": ""}),
            (FORM, '{"a":1}', {'{"a":1}': ""}),
            (FORM + "; charset=utf-8", "100%&%zz=%F", {"100%": "", "%zz": "%F"}),
            ("text/plain", '{"a":1}', '{"a":1}'),
            ("text/csv; charset=utf-8", "\ufeffa,b", "a,b"),
            ("application/json", '{"a":1}', {"a": 1}),
            ("", "1", 1),
        ):
            with self.subTest(body):
                self.assertEqual(read_input(call_with(content_type=content_type), body.encode(), WISHES), value)
        self.assertEqual(form_pairs(b"a=%FF&&b"), [("a", b"\xff"), ("b", b"")])

    def test_text_is_decoded_in_its_charset_and_refused_if_it_is_malformed(self):
        latin = call_with(content_type="text/plain; charset=iso-8859-1")
        self.assertEqual(read_input(latin, b"\xfc\x81", WISHES), "\u00fc\x81")
        self.refused('^The body is not text in "utf-8"\\.$', b"\xfc", WISHES, content_type="text/plain")
        klingon = "text/plain; charset=klingon"
        self.refused('^The body is not text in "klingon"\\.$', b"x", WISHES, content_type=klingon)

    def test_unknown_charset_names_take_no_memory(self):
        kept = getattr(encodings, "_cache")
        made_up = ["klingon%d" % n for n in range(20)] + ["utf" + "-" * n + "8" for n in range(1, 20)]
        decode_text(b"", "utf-8")
        before = len(kept)
        for charset in made_up:
            try:
                decode_text(b"x", charset)
            except ValueError:
                pass
        self.assertEqual(len(kept), before)

    def test_every_charset_of_browsers_is_read(self):
        for charset in (
            *(
                "utf-8",
                "UTF8",
                " utf-16le ",
                "utf-16be",
                "us-ascii",
                "ISO-8859-2",
                "iso8859_5",
                "latin1",
                "l2",
                "ibm866",
            ),
            *("koi8-r", "KOI8-U", "macintosh", "windows-1251", "cp1258", "cp874", "gbk", "gb18030", "big5", "euc-jp"),
            *("shift_jis", "sjis", "iso-2022-jp", "euc-kr"),
        ):
            with self.subTest(charset):
                name = charset.strip()
                self.assertEqual(decode_text("ab".encode(name), charset), "ab")


if __name__ == "__main__":
    unittest.main()
