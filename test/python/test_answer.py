"""Encoding of an app's outputs. Arrays of numpy are real if it is installed, other libraries are stubs."""

import asyncio
import collections
import dataclasses
import datetime
import decimal
import enum
import importlib.util
import json
import math
import pathlib
import sys
import types
import unittest
import uuid
from unittest import mock

from banana_worker.protocol.msgpack import read_value
from banana_worker.process.hint_once import write_hints_to
from banana_worker.protocol.errors import ServeError
from banana_worker.values import conversions
from banana_worker.reply.stream import Chunks, asks_for
from banana_worker.reply.answer import answer_of
from banana_worker.formats.reply import BytesBody, JsonBody, Reply, ReplyHead, StreamBody
from calls import call_with
from gpu_errors import driver_saying, raise_natively, raised_by

MSGPACK = "application/msgpack"
SSE = "text/event-stream"
NDJSON = "application/x-ndjson"


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Box:
    label: str
    score: object


class Foo:
    pass


class Answers(unittest.TestCase):
    def text(self, output, **fields):
        answer = answer_of(output, call_with(**fields))
        self.assertEqual(answer.head, ReplyHead(200, "application/json"))
        return bytes(answer.body).decode()

    def packed(self, output):
        answer = answer_of(output, call_with(accept=MSGPACK))
        self.assertEqual(answer.head, ReplyHead(200, MSGPACK))
        return read_value(answer.body)

    def refused(self, output, said, **fields):
        with self.assertRaises(ServeError) as raised:
            answer_of(output, call_with(**fields))
        self.assertEqual(raised.exception.code, "SERVE_OUTPUT_INVALID")
        self.assertIn(said, raised.exception.message)
        return raised.exception


class Values(Answers):
    def test_json(self):
        at = datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
        key = uuid.UUID(int=1)
        for output, text in (
            ({"a": [1, "two", None, True], "b": {"c": 1.5}}, '{"a":[1,"two",null,true],"b":{"c":1.5}}'),
            ([1, 2], "[1,2]"),
            ("text", '"text"'),
            (None, "null"),
            (2**70, str(2**70)),
            ("\u00fc\U0001f34c", '"\u00fc\U0001f34c"'),
            ("\ud83c", '"\\ud83c"'),
            ({"nan": math.nan, "inf": [math.inf, -math.inf]}, '{"nan":null,"inf":[null,null]}'),
            ({1: 1, None: 2, False: 3, 1.5: 4}, '{"1":1,"null":2,"false":3,"1.5":4}'),
            ((1, Point(2, 3)), "[1,[2,3]]"),
            ({40, -1, 3}, "[-1,3,40]"),
            (frozenset("hgfedcba"), '["a","b","c","d","e","f","g","h"]'),
            ({"bytes": b"\x01\x02", "view": memoryview(b"\x03")}, '{"bytes":[1,2],"view":[3]}'),
            (at, '"2020-01-02T03:04:05+00:00"'),
            ([at.date(), at.time(), datetime.timedelta(minutes=1)], '["2020-01-02","03:04:05",60.0]'),
            ({"path": pathlib.PurePosixPath("/a/b"), "id": key}, '{"path":"/a/b","id":"%s"}' % key),
            ([Colour.RED, Level.LOW], '["red",1]'),
            ([decimal.Decimal("0.10"), decimal.Decimal("1E+3")], "[0.1,1000]"),
            ([decimal.Decimal("NaN"), decimal.Decimal("-Infinity")], "[null,null]"),
            (Box("cat", [Box("dog", 0.5)]), '{"label":"cat","score":[{"label":"dog","score":0.5}]}'),
            (types.MappingProxyType({"a": 1}), '{"a":1}'),
            (collections.OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
            (collections.UserDict(a=[1]), '{"a":[1]}'),
            ([range(3), collections.deque([1]), {"b": 1, "a": 2}.keys()], '[[0,1,2],[1],["b","a"]]'),
            ({key: 1, Colour.RED: 2, pathlib.PurePosixPath("x"): 3}, '{"%s":1,"red":2,"x":3}' % key),
        ):
            with self.subTest(text):
                self.assertEqual(self.text(output), text)

    def test_an_app_that_makes_classes_as_it_runs_does_not_fill_the_memory(self):
        for number in range(3_000):
            kind = type("Row%d" % number, (collections.UserDict,), {})
            self.assertEqual(self.text(kind(number=number)), '{"number":%d}' % number)
        self.assertLessEqual(len(conversions._known), conversions._MAX_KNOWN)

    @unittest.skipUnless(hasattr(sys, "get_int_max_str_digits"), "a Python that writes numbers of any length")
    def test_a_number_of_thousands_of_digits_is_refused_with_its_place(self):
        self.refused({"n": [1, 10**5000]}, 'output["n"][1] is a whole number of some 5000 digits; return it as text')
        self.assertEqual(len(self.text([10**4299] * 100)), 100 * 4301 + 1)

    @unittest.skipUnless(hasattr(sys, "get_int_max_str_digits"), "a Python that writes numbers of any length")
    def test_a_key_of_thousands_of_digits_is_refused_with_its_place(self):
        self.refused([{10**5000: 1}], "output[0] has a whole number of some 5000 digits as a key; make it text")

    def test_a_dialect_may_ask_for_pure_ascii(self):
        self.assertEqual(self.text(["\u00fc\U0001f34c"], ascii_json=True), '["\\u00fc\\ud83c\\udf4c"]')

    def test_messagepack_for_clients_that_ask_for_it(self):
        for output, value in (
            ({"a": [1, -1, 2.5, None, True, "x" * 300], "b": b"\x00\xff"}, None),
            ({"big": [2**64 - 1, -(2**63)], "list": list(range(70_000))}, None),
            ({"at": datetime.date(2020, 1, 2), 1: {3}}, {"at": "2020-01-02", "1": [3]}),
            (Box("cat", (1, 2)), {"label": "cat", "score": [1, 2]}),
            (math.inf, None),
        ):
            self.assertEqual(self.packed(output), output if value is None else value)
        self.assertTrue(math.isnan(self.packed([math.nan])[0]))
        self.refused({"n": 2**64}, 'output["n"] is an integer beyond 64 bits', accept=MSGPACK)

    def test_the_accept_header_chooses_the_format(self):
        for accept, is_wanted in (
            (MSGPACK, True),
            ("application/msgpack, application/json", True),
            ("application/msgpack;q=0.5, application/json", False),
            ("application/msgpack;q=0", False),
            ("application/msgpack;q=nan", False),
            ("*/*", False),
            ("", False),
        ):
            self.assertEqual(asks_for(accept, MSGPACK), is_wanted, accept)

    def test_the_other_names_of_messagepack_select_it_too(self):
        for name in ("application/x-msgpack", "application/vnd.msgpack"):
            answer = answer_of({"a": 1}, call_with(accept=f"{name}, */*"))
            self.assertEqual((answer.head.content_type, bytes(answer.body)), (name, b"\x81\xa1a\x01"))

    def test_the_first_number_that_json_does_not_have_is_named_once(self):
        lines = []
        self.addCleanup(write_hints_to, None)
        write_hints_to(lines.append)
        for _ in range(2):
            self.text({"a": [1.0, 2.0], "scores": [0.5, math.nan, math.inf], "n": math.inf})
        self.packed({"n": math.nan})
        self.assertEqual(len(lines), 1)
        self.assertIn('output["scores"][1] is not a finite number', lines[0])
        write_hints_to(lines.append)
        self.text({"deep": [{"n": -math.inf}]})
        self.assertIn('output["deep"][0]["n"] is not', lines[1])

    def test_bytes_are_sent_unchanged(self):
        for output in (b"\x00\x01", bytearray(b"\x00\x01"), memoryview(b"0\x000\x01")[1::2]):
            answer = answer_of(output, call_with(accept=MSGPACK))
            self.assertEqual(answer.head, ReplyHead(200, "application/octet-stream"))
            self.assertEqual(bytes(answer.body), b"\x00\x01")

    def test_an_exception_that_is_returned_is_raised(self):
        with self.assertRaises(KeyError):
            answer_of(KeyError("a"), call_with())


class Mistakes(Answers):
    def test_a_value_that_is_not_data_is_named_with_its_place(self):
        loop = {"list": [{}]}
        loop["list"][0]["back"] = loop
        deep = []
        for _ in range(50_000):
            deep = [deep]

        async def later():
            pass

        coroutine = later()
        self.addCleanup(coroutine.close)
        for output, said in (
            ({"scores": [1, 2, 3, Foo()]}, 'output["scores"][3] is a Foo; return what it holds as a dict'),
            (Foo(), "output is a Foo"),
            (Box("x", Foo), 'output["score"] is the class Foo; return an instance'),
            ({"f": [len]}, 'output["f"][0] is a function; call it, or leave it out'),
            ({"later": coroutine}, 'output["later"] is a coroutine; await it'),
            ([x for x in [(y for y in [])]], "output[0] is a generator; return list(...) of it"),
            ({"m": json}, 'output["m"] is the module json'),
            ([{"e": ValueError("x")}], 'output[0]["e"] is an exception; return its text, or raise it'),
            ([1j], "output[0] is a complex number; return its real and its imag"),
            ({"a": {(1, 2): 3}}, 'output["a"] has a tuple as a key; make it text'),
            ({b"k": 1}, "output has bytes as a key; make it text"),
            ({Foo(): 1}, "output has a Foo as a key; make it text"),
            (loop, 'output["list"][0]["back"] refers back to an object that contains it'),
            (deep, "output is nested more than 128 levels deep"),
        ):
            with self.subTest(said):
                self.refused(output, "The output is not JSON: " + said)
        self.refused({"x": [Foo()]}, 'The output is not MessagePack: output["x"][0] is a Foo', accept=MSGPACK)

    def test_a_refused_value_is_encoded_once_it_is_corrected(self):
        inside = []
        inside.append({"back": inside})
        self.refused(inside, "refers back")
        inside[:] = [1]
        with mock.patch("banana_worker.values.json_encoding.plain_value", side_effect=AssertionError("the slow way")):
            self.assertEqual(answer_of([inside, inside], call_with()).body, b"[[1],[1]]")

    def test_an_attribute_that_raises_is_named_with_its_place(self):
        class Broken(collections.UserDict):
            def __iter__(self):
                raise RuntimeError("a secret")

        error = self.refused([Broken(a=1)], "output[0] (Broken) cannot be read: RuntimeError.")
        self.assertNotIn("secret", error.message)
        self.assertIn("output[0] (Broken)", error.detail)
        self.assertRegex(error.detail, r"test_answer.py(.|\n)*RuntimeError: a secret$")

    def test_an_error_of_the_process_is_raised_unchanged(self):
        for kind, text in ((RuntimeError, "CUDA error: device-side assert triggered"), (MemoryError, "no memory")):
            with driver_saying(True):
                errors = list(self.errors_in_cpu(lambda: raise_natively(text, kind)))
            for accept, error in errors:
                with self.subTest(text, accept=accept):
                    self.assertEqual((type(error), str(error)), (kind, text))

    def test_a_text_of_a_client_is_not_an_error_of_the_process(self):
        def unknown_label():
            raise RuntimeError("CUDA error: device-side assert triggered")

        for accept, error in self.errors_in_cpu(unknown_label):
            with self.subTest(accept=accept):
                self.assertIsInstance(error, ServeError)

    def errors_in_cpu(self, fail):
        class Tensor:
            def detach(self):
                return self

            def cpu(self):
                fail()

        Tensor.__module__ = "torch"
        for output in (Tensor(), {"a": [Tensor()]}):
            for accept in ("", MSGPACK):
                yield accept, raised_by(lambda: answer_of(output, call_with(accept=accept)))


class Streams(Answers):
    def streamed(self, output, accept="*/*"):
        answer = answer_of(output, call_with(accept=accept))
        self.assertIsInstance(answer, Chunks)
        return answer

    def test_iterators_stream_in_the_form_that_the_client_asks_for(self):
        def numbers():
            yield 1
            yield {"two": 2}
            yield "three"

        for accept, content_type, body in (
            ("*/*", NDJSON, b'1\n{"two":2}\nthree'),
            (NDJSON, NDJSON, b'1\n{"two":2}\n"three"\n'),
            ("application/ndjson", NDJSON, b'1\n{"two":2}\n"three"\n'),
            (SSE, SSE, b'data: 1\n\ndata: {"two":2}\n\ndata: three\n\n'),
        ):
            answer = self.streamed(numbers(), accept)
            self.assertEqual(b"".join(answer), body)
            self.assertEqual(answer.head.content_type, content_type)

    def test_half_a_character_which_utf_8_cannot_hold_is_replaced_in_text_and_escaped_in_json(self):
        half = "a\ud800b"
        for items, accept, body in (
            ([half], "*/*", b"a\xef\xbf\xbdb"),
            ([half, "\ud83d\ude00"], SSE, b"data: a\xef\xbf\xbdb\n\ndata: \xf0\x9f\x98\x80\n\n"),
            ([{"text": half}], SSE, b'data: {"text":"a\\ud800b"}\n\n'),
            ([half], NDJSON, b'"a\\ud800b"\n'),
        ):
            self.assertEqual(b"".join(self.streamed(iter(items), accept)), body)
        self.assertEqual(self.packed(half), "a\ufffdb")

    def test_the_first_item_decides_the_type_of_a_stream(self):
        for items, content_type, body in (
            (["a", "\u00fc"], "text/plain; charset=utf-8", b"a\xc3\xbc"),
            ([b"\x01", bytearray(b"\x02")], "application/octet-stream", b"\x01\x02"),
            ([], "application/octet-stream", b""),
            ([None], NDJSON, b"null\n"),
        ):
            for output in (iter(items), map(lambda item: item, items)):
                answer = self.streamed(output)
                self.assertEqual(b"".join(answer), body)
                self.assertEqual(answer.head, ReplyHead(200, content_type))

    def test_each_line_of_a_text_is_a_field_of_its_event(self):
        answer = self.streamed(iter(["two\r\nlines\rand\nmore"]), SSE)
        self.assertEqual(b"".join(answer), b"data: two\ndata: lines\ndata: and\ndata: more\n\n")
        self.assertEqual(answer.head.headers, "Cache-Control\nno-cache")

    def test_async_generators_stream(self):
        async def numbers():
            yield 1
            yield 2

        answer = self.streamed(numbers())

        async def taken():
            return [chunk async for chunk in answer]

        self.assertEqual(asyncio.run(taken()), [b"1\n", b"2\n"])
        self.assertEqual(answer.head.content_type, NDJSON)

    def test_an_item_that_cannot_be_encoded_closes_the_generator_and_so_does_a_client_that_leaves(self):
        events = []

        def items():
            try:
                yield 1
                yield Foo()
            finally:
                events.append("closed")

        chunks = self.streamed(items())
        self.assertEqual(next(chunks), b"1\n")
        with self.assertRaisesRegex(ServeError, "output is a Foo"):
            next(chunks)
        chunks = self.streamed(items())
        next(chunks)
        chunks.close()
        self.assertEqual(events, ["closed", "closed"])

        async def later():
            try:
                yield 1
                yield Foo()
            finally:
                events.append("closed later")

        async def left():
            first = self.streamed(later())
            await first.__anext__()
            await first.aclose()
            second = self.streamed(later())
            await second.__anext__()
            with self.assertRaisesRegex(ServeError, "output is a Foo"):
                await second.__anext__()

        asyncio.run(left())
        self.assertEqual(events[2:], ["closed later", "closed later"])


class Replies(Answers):
    def test_a_reply_keeps_its_head(self):
        head = ReplyHead(201, "text/plain", "X-A\n1", "Made")
        whole = answer_of(Reply(head, BytesBody(b"x")), call_with(accept=MSGPACK))
        self.assertEqual(whole, (head, b"x"))
        json_head = ReplyHead(202, "application/json")
        made = answer_of(Reply(json_head, JsonBody({"a": 1})), call_with(accept=MSGPACK))
        self.assertEqual(made, (json_head, b'{"a":1}'))

    def test_a_stream_may_have_its_own_head(self):
        for head, from_chunk, body, content_type in (
            (ReplyHead(200, "text/x"), False, b'a{"b":1}\n', "text/x"),
            (ReplyHead(200, "Text/Event-Stream; x=y"), False, b'adata: {"b":1}\n\n', "Text/Event-Stream; x=y"),
            (ReplyHead(206, ""), True, b'a{"b":1}\n', "text/plain; charset=utf-8"),
        ):
            stream = StreamBody(iter(["a", {"b": 1}]), from_chunk)
            answer = answer_of(Reply(head, stream), call_with(accept=SSE))
            self.assertEqual(b"".join(answer), body)
            self.assertEqual(answer.head, head._replace(content_type=content_type))

    def test_an_iterator_that_has_ended_is_not_asked_again_for_the_chunk_behind_its_items(self):
        """One that reads a queue up to a mark would wait for ever."""
        asked = []

        class Once:
            def __iter__(self):
                return self

            def __next__(self):
                asked.append("sync")
                raise StopIteration

        class OnceAsync:
            def __aiter__(self):
                return self

            async def __anext__(self):
                asked.append("async")
                raise StopAsyncIteration

        def chunks_of(items):
            body = StreamBody(items, encode=lambda item: b"", last=lambda: b"all")
            return answer_of(Reply(ReplyHead(), body), call_with())

        async def later():
            return [chunk async for chunk in chunks_of(OnceAsync())]

        self.assertEqual(list(chunks_of(Once())), [b"all"])
        self.assertEqual(asyncio.run(later()), [b"all"])
        self.assertEqual(asked, ["sync", "async"])


def stub(module, name, **members):
    """A class with the module and name of a library's."""
    return type(name, (), dict(members, __module__=module))


class Libraries(Answers):
    def test_tensors_of_torch_are_moved_to_the_cpu_without_gradients(self):
        steps = []

        class Tensor:
            __module__ = "torch"
            layout = "torch.strided"

            def __init__(self, dtype="torch.float32"):
                self.dtype = dtype

            def step(self, name, dtype=None):
                steps.append(name)
                return type(self)(dtype or self.dtype)

            def detach(self):
                return self.step("detach")

            def cpu(self):
                return self.step("cpu")

            def float(self):
                return self.step("float", "torch.float32")

            def to_dense(self):
                dense = self.step("to_dense")
                dense.layout = "torch.strided"
                return dense

            def tolist(self):
                assert self.dtype == "torch.float32" and self.layout == "torch.strided", steps
                return [[0.5, 1.5]]

        class Parameter(Tensor):
            __module__ = "torch.nn.parameter"

        self.assertEqual(self.text({"t": Tensor()}), '{"t":[[0.5,1.5]]}')
        self.assertEqual(steps, ["detach", "cpu"])
        self.assertEqual(self.text(Parameter("torch.bfloat16")), "[[0.5,1.5]]")
        self.assertEqual(steps[-1], "float")
        self.assertEqual(self.packed([Tensor()]), [[[0.5, 1.5]]])
        self.refused([Tensor("torch.complex64")], "output[0] is a tensor of complex numbers")

    def test_images_are_png_files_and_text_among_other_values(self):
        saved = []

        class Image:
            __module__ = "PIL.Image"
            mode = "RGB"

            def convert(self, mode):
                saved.append(mode)
                return type(self)()

            def save(self, file, format):
                file.write(b"\x89" + format.encode())

        class Jpeg(Image):
            __module__ = "PIL.JpegImagePlugin"
            mode = "CMYK"

        answer = answer_of(Image(), call_with())
        self.assertEqual(answer, (ReplyHead(200, "image/png"), b"\x89PNG"))
        self.assertEqual(answer_of(Jpeg(), call_with()).body, b"\x89PNG")
        self.assertEqual(saved, ["RGB"])
        self.assertEqual(self.text({"image": Image()}), '{"image":"iVBORw=="}')
        self.assertEqual(self.packed({"image": Image()}), {"image": b"\x89PNG"})

    def test_tables_of_pandas_are_records(self):
        DataFrame = stub("pandas.core.frame", "DataFrame", to_dict=lambda self, orient: [{"a": 1, orient: math.nan}])
        row = stub("pandas.core.series", "Series", index=["a", "b"], tolist=lambda self: [1, "x"])
        column = stub("pandas", "Series", index=[0, 1], tolist=lambda self: [1, math.nan])
        NaTType = type("NaTType", (datetime.datetime,), {"__module__": "pandas._libs.tslibs.nattype"})
        self.assertEqual(self.text(DataFrame()), '[{"a":1,"records":null}]')
        self.assertEqual(self.text([row(), column()]), '[{"a":1,"b":"x"},[1,null]]')
        self.assertEqual(self.text({"at": NaTType(2020, 1, 1)}), '{"at":null}')

    def test_models_of_pydantic_of_both_generations(self):
        new = stub("app", "New", model_fields={}, model_dump=lambda self: {"at": datetime.date(2020, 1, 1)})
        old = stub("app", "Old", __fields__={}, parse_obj=None, dict=lambda self: {"a": Colour.RED})
        root = stub("app", "Root", __fields__={}, parse_obj=None, dict=lambda self: {"__root__": [1]})
        self.assertEqual(self.text([new(), old(), root()]), '[{"at":"2020-01-01"},{"a":"red"},[1]]')

    def test_a_model_of_pydantic_is_data_though_it_can_be_iterated_over(self):
        members = {
            "model_fields": {},
            "model_dump": lambda self: {"at": Box("x", None)},
            "__iter__": lambda self: iter("ab"),
        }
        self.assertEqual(self.text(stub("app", "New", **members)()), '{"at":{"label":"x","score":null}}')
        rows = stub(
            "app", "Rows", model_fields={}, model_dump=lambda self: [1, datetime.date(2020, 1, 1)]
        )  # a RootModel
        self.assertEqual(self.text({"rows": rows()}), '{"rows":[1,"2020-01-01"]}')

    def test_classes_of_attrs_are_objects_of_their_fields(self):
        fields = [types.SimpleNamespace(name=name) for name in ("label", "at")]
        Cat = stub("app", "Cat", __attrs_attrs__=fields, __slots__=("label", "at"))
        cat = Cat()
        cat.label, cat.at = "cat", datetime.date(2020, 1, 1)
        self.assertEqual(self.text([cat]), '[{"label":"cat","at":"2020-01-01"}]')
        cat.at = Foo()
        self.refused({"cat": cat}, 'output["cat"]["at"] is a Foo')

    def test_arrays_of_jax_are_encoded_if_the_app_does_not_import_numpy(self):
        array = stub("jaxlib._jax", "ArrayImpl", __array__=None, tolist=lambda self: [0.5, math.inf])
        with mock.patch.dict(sys.modules, {"numpy": None}):
            self.assertEqual(self.text({"a": array()}), '{"a":[0.5,null]}')

    def test_encoding_loads_no_library(self):
        self.text({"a": {1}, "b": Box("x", None)})
        for name in ("torch", "pandas", "PIL", "pydantic", "jax", "tensorflow"):
            self.assertNotIn(name, sys.modules)


@unittest.skipUnless(importlib.util.find_spec("numpy"), "needs numpy (Debian: python3-numpy)")
class Numpy(Answers):
    def test_scalars_and_arrays(self):
        import numpy as np

        structured = np.array([(1, 2.5, "a")], dtype=[("x", "i4"), ("y", "f4"), ("z", "U3")])
        for output, text in (
            (np.int64(2**62), str(2**62)),
            (np.float32(1.5), "1.5"),
            (np.float16(2), "2.0"),
            (np.longdouble(1.5), "1.5"),
            (np.bool_(True), "true"),
            (np.str_("x"), '"x"'),
            (np.array(5), "5"),
            (np.arange(12).reshape(3, 4)[::2, ::2], "[[0,2],[8,10]]"),
            (np.array([True, False]), "[true,false]"),
            ({"a": np.array([1, np.nan, np.inf])}, '{"a":[1.0,null,null]}'),
            (np.array(["2020-01-02", "NaT"], dtype="datetime64[D]"), '["2020-01-02",null]'),
            (np.datetime64("2020-01-02T03:04:05.123456789"), '"2020-01-02T03:04:05.123456789"'),
            (np.timedelta64(1500, "ms"), "1.5"),
            (structured, '[{"x":1,"y":2.5,"z":"a"}]'),
            (structured[0], '{"x":1,"y":2.5,"z":"a"}'),
            (np.array([{"a": np.int8(1)}, None], dtype=object), '[{"a":1},null]'),
            (np.ma.array([1, 2], mask=[0, 1]), "[1,null]"),
            ({np.int64(3): np.zeros((0, 2))}, '{"3":[]}'),
        ):
            with self.subTest(text):
                self.assertEqual(self.text(output), text)
        largest = np.uint64(2**64 - 1)
        self.assertEqual(self.packed({"v": np.float32([0.5, 1]), "n": largest}), {"v": [0.5, 1], "n": 2**64 - 1})
        self.refused({"z": np.array([1j])}, 'output["z"] is an array of complex numbers')

    def test_anything_that_numpy_reads_as_an_array(self):
        import numpy as np

        tensor = stub("jaxlib.xla_extension", "ArrayImpl", __array__=lambda self, *_, **__: np.float32([1, 2]))
        self.assertEqual(self.text([tensor()]), "[[1.0,2.0]]")
        eager = stub(
            "tensorflow.python.framework.ops",
            "EagerTensor",
            __array__=lambda self, *_, **__: np.int32([[1], [2]]),
            __iter__=lambda self: iter([1, 2]),
            __len__=lambda self: 2,
        )
        self.assertEqual(self.text(eager()), "[[1],[2]]")
        self.assertEqual(self.packed({"t": eager()}), {"t": [[1], [2]]})


if __name__ == "__main__":
    unittest.main()
