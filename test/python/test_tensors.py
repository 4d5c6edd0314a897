"""Requests and answers of the Open Inference Protocol. The rows are those of test/worker/formats/open-inference, where
both languages agree."""

import dataclasses
import importlib.util
import inspect
import json
import math
import random
import struct
import sys
import types
import unittest
from array import array
from unittest import mock

from banana_serve import Tensor
from banana_worker.adapters.exports import signature_of
from banana_worker.formats.open_inference import Exchange
from banana_worker.formats.reply import BytesBody, JsonBody, Reply, ReplyHead, StreamBody, ValueBody
from banana_worker.formats.task_bodies import result_of
from banana_worker.formats.tensors.elements import bf16_bits
from banana_worker.formats.tensors.request import check_inputs, read_request
from banana_worker.protocol.errors import ServeError
from banana_worker.values.tensor import DATATYPES, Signature, TensorSpec
from calls import call_with

JSON_BYTES = "Inference-Header-Content-Length"
X = {"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}
DEEP = "[" * 500 + "]" * 500

DATA = {
    "BOOL": ([True, False], b"\1\0"),
    "UINT8": ([0, 255], b"\0\xff"),
    "UINT16": ([0, 65535], struct.pack("<2H", 0, 65535)),
    "UINT32": ([0, 2**32 - 1], struct.pack("<2I", 0, 2**32 - 1)),
    "UINT64": ([2**53 + 1, 2**64 - 1], struct.pack("<2Q", 2**53 + 1, 2**64 - 1)),
    "INT8": ([-128, 127], struct.pack("<2b", -128, 127)),
    "INT16": ([-32768, 32767], struct.pack("<2h", -32768, 32767)),
    "INT32": ([-(2**31), 1.0], struct.pack("<2i", -(2**31), 1)),
    "INT64": ([-(2**63), 2**63 - 1], struct.pack("<2q", -(2**63), 2**63 - 1)),
    "FP16": ([1, -2], struct.pack("<2e", 1, -2)),
    "BF16": ([1, -2], struct.pack("<2H", 0x3F80, 0xC000)),
    "FP32": ([0.5, math.inf], struct.pack("<2f", 0.5, math.inf)),
    "FP64": ([0.1, -1e300], struct.pack("<2d", 0.1, -1e300)),
    "BYTES": (["é\0", ""], b"\3\0\0\0\xc3\xa9\0\0\0\0\0"),
}


def tensor(datatype, values, shape=None):
    """A tensor of values as JSON has them."""
    item = {"name": "x", "datatype": datatype, "shape": [len(values)] if shape is None else shape, "data": values}
    return read({"inputs": [item]}).inputs["x"]


def read(request):
    return read_request(json.dumps(request).encode(), None, None)


def read_binary(request, raw):
    text = json.dumps(request).encode()
    return read_request(text + raw, len(text), None)


def sized(size):
    return {"parameters": {"binary_data_size": size}}


def exchange(headers="", signature=None, **fields):
    call = call_with(headers=headers, dialect_params="model=m%2Fn&version=2", **fields)
    return Exchange(call, signature)


def answered(output, outputs=None, binary=None, signature=None, ascii_json=False):
    """Headers and body of the answer to a call whose app returned this."""
    call = exchange(signature=signature, ascii_json=ascii_json)
    request = {"inputs": []}
    if outputs is not None:
        request["outputs"] = outputs
    if binary is not None:
        request["parameters"] = {"binary_data_output": binary}
    call._request = read(request)
    reply = call.write(Reply(ReplyHead(), ValueBody(output)))
    return reply.head.headers, reply.body.data


def outputs_of(output, **wishes):
    """The outputs in the JSON of an answer."""
    headers, body = answered(output, **wishes)
    json_bytes = int(headers.split("\n")[1]) if headers else len(body)
    return json.loads(body[:json_bytes])["outputs"]


class Refusals(unittest.TestCase):
    def refused(self, act, text, code="SERVE_BAD_BODY"):
        with self.assertRaises(ServeError) as caught:
            act()
        self.assertEqual(caught.exception.code, code)
        self.assertRegex(caught.exception.message, text)


class Tensors(unittest.TestCase):
    def test_a_tensor_has_any_buffer_of_its_elements(self):
        for data in (array("f", [1, 2]), memoryview(array("f", [1, 2])), struct.pack("<2f", 1, 2)):
            self.assertEqual(Tensor("FP32", [1, 2], data).data.tolist(), [1.0, 2.0])
        self.assertEqual(Tensor("INT64", (1,), array("l", [-5])).data.tolist(), [-5])
        self.assertEqual(Tensor("BYTES", [2], [b"\xff", "a"]).data, [b"\xff", "a"])
        self.assertEqual(Tensor("FP64", [], array("d", [5])).shape, ())

    def test_fields_that_do_not_match_are_a_type_error_that_says_so(self):
        floats = array("f", [1, 2])
        for given, text in (
            (("FP8", [2], floats), '"FP8" is not a datatype; there are BOOL'),
            (("FP64", [2], floats), "data of FP64 must have elements of the format 'd', not 'f'"),
            (("FP32", [2], [1.0, 2.0]), "data of FP32 must be an array or bytes, not a list"),
            (("FP32", [3], floats), r"the shape \[3\] has 3 elements, but data has 2"),
            (("FP32", [1], b"\0\0\0"), "3 bytes are no whole elements of FP32"),
            (("FP32", [-1], floats), "whole numbers from 0, not -1"),
            (("FP32", [True], floats), "whole numbers from 0, not true"),
            (("FP32", 2, floats), "the shape must be a list of whole numbers, not an int"),
            (("FP32", [2**30, 2**30], floats), "more elements than can be counted"),
            (("FP32", [1] * 33, floats), "33 dimensions; 32 are allowed"),
            (("BYTES", [1], b"a"), "data of BYTES must be a list, not bytes"),
            (("BYTES", [1], [1]), "element 0 of BYTES must be bytes or text, not an int"),
        ):
            with self.subTest(text), self.assertRaisesRegex(TypeError, text):
                Tensor(*given)

    def test_16_bit_floats_are_rounded_once_to_the_nearest(self):
        for value, bits in (
            (65519.99, 0x7BFF),
            (-math.inf, 0xFC00),
            (2.0**-25, 0),
            (1 + 2.0**-11 + 2.0**-40, 0x3C01),
            (-0.0, 0x8000),
        ):
            self.assertEqual(tensor("FP16", [value]).data.tolist(), [bits], value)
        for value, bits in (
            (3.140625, 0x4049),
            (1 + 2.0**-8, 0x3F80),
            (3.39e38, 0x7F7F),
            (2.0**-133, 1),
            (5e-324, 0),
            (-0.0, 0x8000),
            (math.nan, 0x7FC0),
            (math.inf, 0x7F80),
        ):
            self.assertEqual(bf16_bits(value), bits, value)
        for bits in range(0, 0x7F80, 7):
            self.assertEqual(bf16_bits(struct.unpack("<f", struct.pack("<I", bits << 16))[0]), bits)


class Signatures(unittest.TestCase):
    def test_an_app_may_have_a_signature(self):
        inputs = [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}]
        module = types.SimpleNamespace(signature={"inputs": inputs, "outputs": ()})
        self.assertEqual(signature_of(module), ((("x", "FP32", (-1, 2)),), ()))
        for own in (types.SimpleNamespace(), types.SimpleNamespace(signature=inspect.signature)):
            self.assertIsNone(signature_of(own))

    def test_a_wrong_signature_is_a_type_error_that_says_why(self):
        x = {"name": "x", "datatype": "FP32", "shape": [1]}
        for inputs, text in (
            ({}, '"inputs" must be a list, not a dict'),
            ([x, x], '"inputs" has "x" twice'),
            ([5], r'"inputs"\[0\] must be a dict with name, datatype and shape, not an int'),
            ([{**x, "name": ""}], r'the name of "inputs"\[0\] must be text, not ""'),
            ([{**x, "datatype": "float"}], r'the datatype of "inputs"\[0\] is "float"; there are BOOL'),
            ([{**x, "shape": [-2]}], r"with -1 for a free one, not \[-2\]"),
            ([{**x, "shape": [True]}], r"not \[true\]"),
            ([{**x, "shape": 2}], "not 2"),
        ):
            with self.subTest(text), self.assertRaisesRegex(TypeError, text):
                signature_of(types.SimpleNamespace(signature={"inputs": inputs, "outputs": []}))


class Requests(Refusals):
    def test_values_of_every_datatype_are_read_from_json_and_from_bytes(self):
        self.assertEqual(sorted(DATA), sorted(DATATYPES))
        for datatype, (values, raw) in DATA.items():
            with self.subTest(datatype):
                made = tensor(datatype, values)
                item = {"name": "x", "datatype": datatype, "shape": [2], **sized(len(raw))}
                self.assertEqual(read_binary({"inputs": [item]}, raw).inputs["x"], made)
                if datatype == "BYTES":
                    self.assertEqual(made.data, [text.encode() for text in values])
                else:
                    self.assertEqual(made.data.tobytes(), raw)

    def test_nan_and_infinities_are_tritons_words(self):
        text = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[3],"data":[NaN,Infinity,-Infinity]}]}'
        self.assertEqual(str(read_request(text, None, None).inputs["x"].data.tolist()), "[nan, inf, -inf]")

    def test_data_is_flat_or_nested_like_the_shape(self):
        for shape, data, flat in (
            ([2, 3], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
            ([2, 3], [[1, 2, 3], [4, 5, 6]], [1, 2, 3, 4, 5, 6]),
            ([2, 1, 2], [[[1, 2]], [[3, 4]]], [1, 2, 3, 4]),
            ([], [5], [5]),
            ([0, 3], [], []),
            ([2, 0], [[], []], []),
        ):
            self.assertEqual(tensor("FP32", data, shape).data.tolist(), flat)

    def test_wrong_inputs_are_refused_by_name(self):
        for datatype, shape, data, text in (
            ("UINT8", [2], [1, 256], "element 1 is 256; UINT8 has whole numbers from 0 to 255"),
            ("UINT64", [1], [-1], "element 0 is -1; UINT64 has whole numbers from 0 to 18446744073709551615"),
            ("INT64", [1], [2**63], "element 0 is 9223372036854775808; INT64 has whole numbers from -92"),
            ("INT32", [1], [1.5], "element 0 is 1.5; INT32 has whole numbers"),
            ("INT64", [1], [1e18], r"element 0 is 1e\+18; INT64 has whole numbers"),
            ("FP32", [1], ["1"], 'element 0 is "1"; FP32 has numbers'),
            ("FP64", [1], [None], "element 0 is null; FP64 has numbers"),
            ("FP64", [1], [10**400], r"element 0 is a number of many digits; FP64 has numbers up to 1\.79"),
            (
                "FP32",
                [2],
                [1, -3.4028235677973366e38],
                r"element 1 is -3\.402\S+; FP32 has numbers up to 3\.4028235e\+38",
            ),
            ("FP16", [1], [65520], "element 0 is 65520; FP16 has numbers up to 65504"),
            ("BF16", [1], [2**128], "BF16 has numbers up to 3.3895314e"),
            ("FP32", [1], [True], "element 0 is true; FP32 has numbers"),
            ("INT8", [2], [1, True], "element 1 is true; INT8 has whole numbers"),
            ("BOOL", [1], [1], "element 0 is 1; BOOL has true or false"),
            ("BYTES", [1], [1], "element 0 is 1; BYTES has texts"),
            ("BYTES", [1], ["\ud800"], 'element 0 is "\\\\ud800"; BYTES has texts'),
            ("FP32", [2, 3], [1, 2, 3], r"the shape \[2, 3\] has 6 elements, but data has 3"),
            ("FP32", [2, 2], [[1, 2], [3]], r"a list in dimension 1 of data has 1 items; the shape \[2, 2\] wants 2"),
            ("FP32", [2, 1], [[1], 2], r"not nested like the shape \[2, 1\]: it has 2 beside lists"),
            ("FP32", [1, 1], [[[1]]], r"element 0 is \[1\]; FP32 has numbers"),
            ("FP32", [1, 1, 1], [[1]], "not nested like the shape"),
            ("FP64", [1, 2**50], [[]], "has 0 items; the shape"),
            ("FP32", [-1], [1], "whole numbers from 0, not -1"),
            ("FP32", [2**33, 2**33], [], "more elements than can be counted"),
            ("FP32", [2**20 + 1, 0], [], r"the shape \[1048577, 0\] has no elements; the product of its other"),
            ("fp32", [1], [1], '"fp32" is not a datatype; there are BOOL'),
            (["FP32"], [1], [1], r'\["FP32"\] is not a datatype'),
            ("FP32", [1], 5, "data must be a list, not"),
            ("FP32", [1], None, "it has no data"),
        ):
            with self.subTest(text):
                item = {"name": "x", "datatype": datatype, "shape": shape, "data": data}
                self.refused(lambda item=item: read({"inputs": [item]}), f'^Input "x": .*{text}')

    def test_deep_bodies_and_numbers_beyond_the_largest_are_refused(self):
        for data, text in (
            (DEEP, r'^Input "x": element 0 is \[a list\]; FP32'),
            ("[" * 100_000, "^The body is not valid JSON: it is nested too deeply"),
            ("[" * 100_000 + "]" * 100_000, "^The body is not valid JSON: it is nested too deeply"),
            ("[[1e999]]", "^The body is not valid JSON: 1e999 is beyond the largest number"),
            ("[" + "1" * 5000 + "]", "."),
        ):
            body = '{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":%s}]}' % data
            with self.subTest(text):
                self.refused(lambda body=body: read_request(body.encode(), None, None), text)

    def test_wrong_requests_are_refused(self):
        for request, text in (
            ([], '^The body must be an object with "inputs", not a list'),
            ({}, 'must have "inputs", a list of tensors, not undefined'),
            ({"inputs": [{**X, "name": 5}]}, '^Input 0 must have a "name" that is text, not 5'),
            ({"inputs": [X, 5]}, '^Input 1 must be an object with a "name", not 5'),
            ({"inputs": [X, X]}, '^Input "x" is there twice'),
            ({"inputs": [X], "outputs": [{"name": "a"}, {"name": "a"}]}, '^Output "a" is there twice'),
            ({"inputs": [X], "outputs": "a"}, '"outputs" must be a list, not text'),
            ({"inputs": [X], "id": 5}, '"id" must be text, not 5'),
            ({"inputs": [X], "parameters": 5}, "The request's parameters must be an object, not 5"),
            ({"inputs": [X], "parameters": {"triton_x": 1}}, '"triton_x" is reserved'),
            (
                {"inputs": [X], "parameters": {"sequence_id": "a"}},
                'sequence_id is "a", but this server has no sequences',
            ),
            ({"inputs": [X], "parameters": {"a": []}}, 'The parameter "a" must be text, a number, true or false'),
            ({"inputs": [X], "parameters": {"priority": True}}, "priority must be a whole number from 0, not true"),
            ({"inputs": [X], "parameters": {"priority": -1}}, "priority must be a whole number from 0, not -1"),
            ({"inputs": [X], "parameters": {"timeout": 0.5}}, "timeout must be a whole number from 0, not 0.5"),
            ({"inputs": [X], "parameters": {"binary_data_output": 1}}, "binary_data_output must be true or false"),
            ({"inputs": [{**X, **sized(4)}]}, '^Input "x": it has both data and binary_data_size'),
            ({"inputs": [{**X, "data": None, **sized(4)}]}, f"needs the header {JSON_BYTES}"),
            ({"inputs": [{**X, "parameters": {"shared_memory_region": "r"}}]}, "shared memory is not supported"),
            (
                {"inputs": [X], "outputs": [{"name": "a", "parameters": {"classification": 3}}]},
                '^Output "a": classification is not supported',
            ),
        ):
            with self.subTest(text):
                self.refused(lambda request=request: read(request), text)

    def test_wrong_bytes_are_refused_by_name(self):
        for datatype, shape, size, raw, text in (
            ("FP32", [2], 4, bytes(4), r"FP32 of the shape \[2\] takes 8 bytes, but binary_data_size is 4"),
            ("FP32", [2], 8, bytes(7), "binary_data_size is 8, but only 7 bytes of the body are left"),
            ("FP32", [2], -8, bytes(8), "must be a whole number of bytes, not -8"),
            ("FP32", [2], "8", bytes(8), 'must be a whole number of bytes, not "8"'),
            ("BYTES", [2**50], 8, bytes(8), "its 8 bytes end before the elements of the shape"),
            ("BYTES", [1], 5, b"\2\0\0\0a", r"the shape \[1\] do \(element 0\)"),
            ("BYTES", [2], 8, b"\1\0\0\0a\0\0\0", r"the shape \[2\] do \(element 1\)"),
            ("BYTES", [1], 8, bytes(8), r"more than the 1 elements of the shape \[1\]"),
            ("BOOL", [2], 2, b"\1\2", "element 1 is the byte 2; BOOL has 0 or 1"),
        ):
            item = {"name": "x", "datatype": datatype, "shape": shape, **sized(size)}
            with self.subTest(text):
                self.refused(lambda item=item, raw=raw: read_binary({"inputs": [item]}, raw), f'^Input "x": .*{text}')
        self.refused(lambda: read_binary({"inputs": [X]}, bytes(3)), "^The body has 3 more bytes than its inputs'")
        self.refused(lambda: read_request(b"{}", 1000, None), f"^{JSON_BYTES} is 1000, but the body has 2 bytes")

    def test_any_bytes_are_a_request_or_refused(self):
        chance = random.Random(23)
        valid = json.dumps({"id": "i", "inputs": [X], "outputs": [{"name": "a"}]})
        for _ in range(2000):
            body = bytearray(valid.encode())
            for _ in range(chance.randrange(1, 4)):
                body[chance.randrange(len(body))] = chance.choice(b'[]{}",:0-eNx\xff')
            try:
                read_request(bytes(body), chance.choice((None, None, 5, 40)), None)
            except ServeError as error:
                self.assertEqual(error.code, "SERVE_BAD_BODY")

    def test_the_switch_of_an_output_counts_before_that_of_the_request(self):
        for whole, own, expected in (
            (None, None, False),
            (True, None, True),
            (False, True, True),
            (True, False, False),
            (None, True, True),
        ):
            request = {"inputs": [X], "outputs": [{"name": "a"}]}
            if own is not None:
                request["outputs"][0]["parameters"] = {"binary_data": own}
            if whole is not None:
                request["parameters"] = {"binary_data_output": whole}
            self.assertEqual(read(request).wanted, {"a": expected})
        request = read({"inputs": [X], "outputs": [], "parameters": {"binary_data_output": True}})
        self.assertEqual((request.wanted, request.binary), (None, True))

    def test_parameters_of_the_app_are_kept_and_null_stands_for_a_field_that_is_left_out(self):
        request = read({"inputs": [X], "parameters": {"priority": 1, "timeout": 5, "seed": 2**60, "a": "b"}})
        self.assertEqual(request.params, {"seed": 2**60, "a": "b"})
        empty = read({"id": None, "inputs": [{**X, "parameters": None}], "outputs": None, "parameters": None})
        self.assertEqual((empty.id, empty.wanted, empty.binary, empty.params), ("", None, False, {}))

    def test_a_signature_checks_inputs(self):
        signature = Signature((TensorSpec("a", "FP32", (-1, 2)), TensorSpec("b", "INT64", (1,))), ())
        a, b = tensor("FP32", [0.0] * 6, [3, 2]), tensor("INT64", [1])
        check_inputs({"b": b, "a": a}, signature)
        scalar = Signature((TensorSpec("b", "INT64", ()),), ())
        check_inputs({"b": b}, scalar)  # of the shape [1], as ONNX Runtime takes it
        for inputs, text in (
            ({"a": a}, r'^Input "b" is missing; the model wants INT64 of the shape \[1\]'),
            ({"a": a, "b": b, "c": b}, '^The model has no input "c"; its inputs are "a", "b"'),
            ({"a": a, "b": tensor("INT32", [1])}, r'^Input "b": the model wants INT64 .* but got INT32 of the shape'),
            (
                {"a": tensor("FP32", [0.0] * 6, [2, 3]), "b": b},
                r"wants FP32 of the shape \[-1, 2\], but got .*\[2, 3\]",
            ),
        ):
            self.refused(lambda inputs=inputs: check_inputs(inputs, signature), text)

    def test_a_whole_body_is_the_one_input_of_a_signature(self):
        for datatype, shape, size, expected in (
            ("FP32", (-1, 2), 16, (2, 2)),
            ("FP32", (-1, -1), 16, (1, 4)),
            ("INT8", (3,), 3, (3,)),
            ("BYTES", (-1,), 3, (1,)),
            ("BYTES", (1,), 0, (1,)),
            ("FP32", (-1,), 0, (0,)),
            ("BYTES", (-1, -1, -1), 3, (1, 1, 1)),
            ("INT8", (3,), 4, "bytes are not"),
            ("FP32", (-1,), 6, "bytes are not"),
            ("FP32", (-1, 3, -1, -1), 48, r"48 bytes may have several shapes of FP32 .*; send the shape"),
        ):
            signature = Signature((TensorSpec("x", datatype, shape),), ())
            if isinstance(expected, str):
                self.refused(lambda s=signature, n=size: read_request(bytes(n), 0, s), f'^Input "x": .*{expected}')
                continue
            request = read_request(bytes(size), 0, signature)
            self.assertEqual(request.inputs["x"].shape, expected)
            self.assertEqual((request.wanted, request.binary), (None, True))
        self.refused(lambda: read_request(b"", 0, None), "but this app has no signature")
        self.refused(lambda: read_request(b"", 0, Signature((), ())), "but this model has 0")


class Answers(Refusals):
    def test_values_of_every_datatype_come_back_from_json_and_from_bytes(self):
        for datatype, (values, raw) in DATA.items():
            with self.subTest(datatype):
                made = tensor(datatype, values)
                [output] = outputs_of({"x": made})
                self.assertEqual(tensor(datatype, output["data"]), made)
                headers, body = answered({"x": made}, binary=True)
                json_bytes = int(headers.split("\n")[1])
                self.assertEqual(body[json_bytes:], raw)
                self.assertEqual(
                    json.loads(body[:json_bytes])["outputs"][0]["parameters"], {"binary_data_size": len(raw)}
                )

    def test_an_answer_has_model_version_and_id(self):
        call = exchange()
        call._request = read({"id": 'i"1', "inputs": [], "outputs": [{"name": "x"}]})
        reply = call.write(Reply(ReplyHead(201, "", "X-A\n1"), JsonBody({"y": [], "x": tensor("INT32", [1, -2])})))
        fields = '"model_name":"m/n","model_version":"2","id":"i\\"1"'
        text = '{%s,"outputs":[{"name":"x","datatype":"INT32","shape":[2],"data":[1,-2]}]}' % fields
        self.assertEqual(reply.head, (201, "application/json", "X-A\n1", ""))
        self.assertEqual(reply.body.data.decode(), text)

    def test_nan_and_infinities_are_tritons_words(self):
        _, body = answered([math.nan, math.inf, -math.inf])
        self.assertIn(b'"data":[NaN,Infinity,-Infinity]', body)

    def test_text_beyond_ascii_is_escaped_for_clients_that_break_it(self):
        headers, body = answered({"é": ["😀é"], "raw": tensor("UINT8", [255])}, ascii_json=True)
        self.assertTrue(body.isascii() if hasattr(body, "isascii") else True)
        self.assertEqual(json.loads(body)["outputs"][0]["data"], ["😀é"])
        self.assertIn(b'"\\u00e9"', body)

    def test_bytes_that_are_no_text_leave_as_bytes_alone(self):
        made = Tensor("BYTES", [2], ["a", b"\xff"])
        self.refused(
            lambda: answered({"x": made}),
            '^Output "x": element 1 is not text in UTF-8, .*ask for it with the parameter "binary_data": true',
            "SERVE_HTTP_ERROR",
        )
        self.assertTrue(answered({"x": made}, binary=True)[1].endswith(b"\1\0\0\0a\1\0\0\0\xff"))
        pair = Tensor("BYTES", [1], ["\ud800"])
        self.refused(lambda: answered({"x": pair}), "not text in UTF-8", "SERVE_HTTP_ERROR")
        self.refused(lambda: answered({"x": pair}, binary=True), "half of a surrogate pair", "SERVE_OUTPUT_INVALID")

    def test_only_the_wanted_outputs_are_written(self):
        both = {"x": [1], "y": Tensor("BYTES", [1], [b"\xff"])}
        self.assertEqual([one["name"] for one in outputs_of(both, outputs=[{"name": "x"}])], ["x"])
        missing = '^The model returned no output "z"; it returned "x", "y"'
        self.refused(lambda: answered(both, outputs=[{"name": "z"}]), missing, "SERVE_HTTP_ERROR")

    def test_values_are_tensors(self):
        for value, datatype, shape, data in (
            ({"datatype": "INT8", "shape": [1, 2], "data": [[1, -2]]}, "INT8", [1, 2], [1, -2]),
            ({"datatype": "FP32", "shape": [1], "data": array("f", [1])}, "FP32", [1], [1]),
            ([1, 0.5], "FP64", [2], [1, 0.5]),
            ([[1, 2], (3, 4)], "FP64", [2, 2], [1, 2, 3, 4]),
            ([True, False], "BOOL", [2], [True, False]),
            (["a", b"b"], "BYTES", [2], ["a", "b"]),
            ([], "FP64", [0], []),
            (5, "FP64", [1], [5]),
            ("a", "BYTES", [1], ["a"]),
            (False, "BOOL", [1], [False]),
        ):
            for output in (value, {"output": value}):
                with self.subTest(value=output):
                    [made] = outputs_of(output)
                    expected = {"name": "output", "datatype": datatype, "shape": shape, "data": data}
                    self.assertEqual(made, expected)

    def test_an_object_of_fields_has_an_output_for_each(self):
        @dataclasses.dataclass
        class Out:
            scores: list
            label: str

        made = outputs_of(Out([0.5], "a"))
        self.assertEqual([(one["name"], one["data"]) for one in made], [("scores", [0.5]), ("label", ["a"])])
        call = call_with(dialect_params="model=m")
        reply = result_of(Reply(ReplyHead(), ValueBody(Out([0.5], "a"))), call, "scores", lambda *given: {"got": given})
        self.assertEqual(json.loads(reply.body.data), {"got": [[0.5], "m", None]})

    def test_a_signature_names_an_output_and_converts_lists(self):
        signature = Signature((), (TensorSpec("y", "FP16", (-1,)),))
        [made] = outputs_of([0.5], signature=signature)
        self.assertEqual(made, {"name": "y", "datatype": "FP16", "shape": [1], "data": [0.5]})
        scalar = Signature((), (TensorSpec("y", "INT64", ()),))
        [made] = outputs_of({"y": 2**60}, signature=scalar)
        self.assertEqual(made, {"name": "y", "datatype": "INT64", "shape": [], "data": [2**60]})

    def test_values_that_are_no_tensors_are_an_error_that_says_so(self):
        cycle = []
        cycle.append(cycle)
        for output, text in (
            (None, "^The output is None; return tensors by name"),
            ({}, "^The output is an empty dict; return tensors by name"),
            ({1: [1]}, "^The name of an output must be text, not an int"),
            ({"a": {"b": 1}}, '^Output "a": a dict is not a tensor'),
            ({"a": None}, '^Output "a": it is None'),
            ({"a": object()}, '^Output "a": it is an object; return'),
            ({"a": [1, True]}, '^Output "a": element 1 is true; FP64 has numbers'),
            (
                {"a": [[1], [1, 2]]},
                r'^Output "a": a list in dimension 1 of data has 2 items; the shape \[2, 1\] wants 1',
            ),
            ({"a": cycle}, '^Output "a": it is nested deeper than 32 lists'),
            ({"a": {"datatype": "FP32", "shape": [3], "data": [1]}}, r"the shape \[3\] has 3 elements, but data has 1"),
        ):
            with self.subTest(text):
                self.refused(lambda output=output: answered(output), text, "SERVE_OUTPUT_INVALID")

    def test_the_error_in_a_body_of_json_is_its_message(self):
        for body, text in ((b'{"message": "no"}', "no"), (b"{", "{")):
            reply = exchange().write(Reply(ReplyHead(409, "application/json"), BytesBody(body)))
            self.assertEqual(json.loads(reply.body.data), {"error": text})

    def test_errors_of_the_app_have_the_shape_of_the_protocol(self):
        for body, text in (
            (JsonBody({"error": "é"}), "é"),
            (JsonBody({"message": "no"}), "no"),
            (JsonBody({"error": {"message": "no"}}), "no"),
            (JsonBody([1]), "[1]"),
            (BytesBody(b"no"), "no"),
            (BytesBody(b"\xff"), "The app refused this call."),
        ):
            reply = exchange().write(Reply(ReplyHead(409, "text/plain", "X-A\n1"), body))
            self.assertEqual(reply.head, (409, "application/json", "X-A\n1", ""))
            self.assertEqual(json.loads(reply.body.data), {"error": text})

    def test_streams_and_bodies_of_the_apps_own_are_refused(self):
        for body in (StreamBody(iter([])), BytesBody(b"a")):
            reply = Reply(ReplyHead(), body)
            self.refused(lambda reply=reply: exchange().write(reply), "a call of its own route", "SERVE_HTTP_ERROR")


class Inputs(Refusals):
    def test_the_header_is_a_length(self):
        for length in ("-1", "1.5", "all", "", "9" * 30, "1, 1", "1\n", "\u0661"):
            call = exchange(
                f"Host\na\n{JSON_BYTES.lower()}\n{length}" if "\n" not in length else f"{JSON_BYTES}\n\n{length}"
            )
            self.refused(lambda call=call: call.read(b"{}"), f"^{JSON_BYTES} must be a whole number of bytes, not ")

    def test_without_numpy_the_app_gets_tensors(self):
        with mock.patch.dict(sys.modules, {"numpy": None}):
            inputs = exchange().read(json.dumps({"inputs": [X]}).encode())
            self.assertEqual(inputs, {"x": Tensor("FP32", [1], array("f", [1]))})
            [made] = outputs_of(inputs)
            self.assertEqual(made, {"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]})


@unittest.skipUnless(importlib.util.find_spec("numpy"), "needs numpy (Debian: python3-numpy)")
class Numpy(Refusals):
    def test_the_app_gets_arrays_that_it_may_write_to_and_returns_such(self):
        for datatype, (values, raw) in DATA.items():
            items = [
                {"name": "x", "datatype": datatype, "shape": [1, 2], **sized(len(raw))},
                {"name": "none", "datatype": datatype, "shape": [2, 0], "data": []},
                {"name": "y", "datatype": datatype, "shape": [2], "data": values},
            ]
            text = json.dumps({"inputs": items, "parameters": {"binary_data_output": True}}).encode()
            call = exchange(f"{JSON_BYTES}\n{len(text)}")
            with self.subTest(datatype):
                inputs = call.read(text + raw)
                reply = call.write(Reply(ReplyHead(), ValueBody(inputs)))
                json_bytes = int(reply.head.headers.split("\n")[1])
                self.assertEqual(reply.body.data[json_bytes:], raw + raw)
                names = [
                    (one["name"], one["datatype"], one["shape"])
                    for one in json.loads(reply.body.data[:json_bytes])["outputs"]
                ]
                expected = [("x", datatype, [1, 2]), ("none", datatype, [2, 0]), ("y", datatype, [2])]
                self.assertEqual(names, expected)
                if datatype != "BF16":
                    self.assertEqual(inputs["x"].shape, (1, 2))
                    self.assertTrue(inputs["x"].flags.writeable and inputs["x"].flags.aligned)

    def test_arrays_of_any_layout_and_numbers_of_numpy_are_tensors(self):
        import numpy as np

        rows = np.arange(12, dtype="int16").reshape(3, 4)
        for value, datatype, shape, data in (
            (rows[::2, ::2], "INT16", [2, 2], [0, 2, 8, 10]),
            (rows[:1].T, "INT16", [4, 1], [0, 1, 2, 3]),
            (np.array([1, 2], dtype=">i4"), "INT32", [2], [1, 2]),
            (np.float32(0.5), "FP32", [], [0.5]),
            (np.array(["a", "é"]), "BYTES", [2], ["a", "é"]),
            (np.array([b"a"], dtype=object), "BYTES", [1], ["a"]),
            ([np.float32([1, 2]), np.float32([3, 4])], "FP32", [2, 2], [1, 2, 3, 4]),
            ([np.int64(2**60)], "INT64", [1], [2**60]),
            ([[np.float32(0.5), np.float32(1)], (np.float32(2), np.float32(3))], "FP32", [2, 2], [0.5, 1, 2, 3]),
            ([[np.float32([1, 2])], [np.float32([3, 4])]], "FP32", [2, 1, 2], [1, 2, 3, 4]),
        ):
            with self.subTest(value=str(value)):
                [made] = outputs_of({"x": value})
                self.assertEqual(made, {"name": "x", "datatype": datatype, "shape": shape, "data": data})

    def test_arrays_that_are_no_tensors_are_refused(self):
        import numpy as np

        for value, text in (
            (np.array([1j]), "an array of complex128 is not a tensor"),
            (np.array([1, None], dtype=object), "element 0 of BYTES must be bytes or text, not an int"),
            ([np.zeros(1), np.zeros(2)], "the arrays of a list must have the same shape"),
            ([[np.float32(1)], [np.float32(1), np.float32(2)]], "the arrays of a list must have the same shape"),
            ([[np.float32(1)], None], "the arrays of a list must have the same shape"),
        ):
            self.refused(lambda value=value: answered({"x": value}), f'^Output "x": .*{text}', "SERVE_OUTPUT_INVALID")


if __name__ == "__main__":
    unittest.main()
