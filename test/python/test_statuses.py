"""Statuses that an app chooses: `HttpError` and `Response` of `banana_serve`."""

from __future__ import annotations

import pickle
import unittest
from bdb import BdbQuit
from contextlib import redirect_stderr, redirect_stdout
from http import HTTPStatus
from io import StringIO
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import banana_serve
import potassium
from banana_serve import HttpError, Response
from banana_serve.testing import context
from banana_worker.failures.failure import failure_of
from banana_worker.reply.response import may_answer_several


class HttpErrors(unittest.TestCase):
    def test_its_status_and_message_are_those_of_the_failure(self) -> None:
        failure = failure_of(HttpError(HTTPStatus.CONFLICT, "taken"))
        self.assertEqual((failure.code, failure.status, failure.message), ("SERVE_HTTP_ERROR", 409, "taken"))
        self.assertIs(type(failure.status), int)
        self.assertIn("banana_serve.HttpError: 409 taken", failure.detail)
        self.assertEqual(failure_of(HttpError(404)).message, "The app refused this call.")

    def test_another_number_and_a_message_that_is_no_text_are_refused_with_the_right_form(self) -> None:
        for status in (200, 399, 600, True, 404.0, "404"):
            with self.assertRaisesRegex(ValueError, r"HttpError\(status, message\): .* 400 to 599"):
                HttpError(status, "x")  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "a dict, not text; .*return Response"):
            HttpError(422, {"age": "missing"})  # type: ignore[arg-type]

    def test_one_that_is_changed_later_counts_as_any_other_exception(self) -> None:
        error = HttpError(409, "x")
        error.status = 200
        self.assertEqual(failure_of(error).code, "SERVE_INFERENCE_FAILED")

    def test_a_class_of_this_name_from_another_package_does_not_count(self) -> None:
        other = type("HttpError", (Exception,), {"status": 409, "message": "secret"})
        self.assertEqual(failure_of(other()).code, "SERVE_INFERENCE_FAILED")

    def test_it_can_be_pickled(self) -> None:
        again = pickle.loads(pickle.dumps(HttpError(409, "taken")))
        self.assertEqual((type(again), again.status, again.message), (HttpError, 409, "taken"))


class Breakpoints(unittest.TestCase):
    def test_the_end_of_pdb_without_a_terminal_says_what_to_do(self) -> None:
        with patch("sys.stdin", StringIO()), redirect_stdout(StringIO()), self.assertRaises(BdbQuit) as quit:
            breakpoint()
            self.fail("it went on")
        self.assertRegex(
            failure_of(quit.exception).detail, r"bdb\.BdbQuit: breakpoint\(\) and pdb need a terminal, .*debugpy"
        )

    def test_a_context_of_this_process_logs_to_stderr(self) -> None:
        ctx = context()
        with redirect_stderr(StringIO()) as printed:
            ctx.log.info("loaded", {"layers": 2})
            ctx.metrics.counter("tokens")
            ctx.progress(0.5)
        self.assertEqual(printed.getvalue(), 'info local loaded {"layers":2}\n')
        self.assertEqual((ctx.cancelled, ctx.headers, ctx.worker.index), (False, {}, 0))


def validation_error(*errors: Any) -> BaseException:
    """Has the form of pydantic's: place, wrong value and text of each error."""
    listed = [
        {"type": "missing" if text == "Field required" else "int_type", "loc": loc, "input": value, "msg": text}
        for loc, value, text in errors
    ]
    facts = {"__module__": "pydantic_core._pydantic_core", "errors": lambda self, **_: listed}
    kind: Any = type("ValidationError", (ValueError,), facts)
    return kind("2 validation errors")


class ValidationErrors(unittest.TestCase):
    INPUT = {"age": "old", "tags": ["a", 5]}
    AGE = (("age",), "old", "Input should be a valid integer")

    def failure(self, error: BaseException, input: Any) -> Any:
        return failure_of(error, None, input)

    def test_one_about_the_input_is_422_and_names_the_wrong_values(self) -> None:
        tag = (("tags", 1, "str"), 5, "Input should be a valid string")
        missing = (("name",), dict(self.INPUT), "Field required")
        failure = self.failure(validation_error(self.AGE, tag, missing), self.INPUT)
        self.assertEqual((failure.code, failure.status), ("SERVE_INPUT_INVALID", 0))
        self.assertEqual(
            [tuple(issue) for issue in failure.issues],
            [
                (["age"], "Input should be a valid integer"),
                (["tags", 1, "str"], "Input should be a valid string"),
                (["name"], "Field required"),
            ],
        )
        self.assertTrue(
            failure.message.startswith("The input is invalid: age: Input should be a valid integer; tags.1")
        )

    def test_one_about_a_field_of_a_service_is_422_too(self) -> None:
        item = SimpleNamespace(item={"body": self.INPUT})
        self.assertEqual(self.failure(validation_error(self.AGE), item).code, "SERVE_INPUT_INVALID")

    def test_one_about_anything_else_is_a_failure_of_the_app(self) -> None:
        label = (("label",), {"score": 0.5}, "Field required")
        for error, input in (
            (validation_error(label), self.INPUT),  # it checks the output of its model
            (validation_error(self.AGE, label), self.INPUT),
            (validation_error((("age",), True, "x")), {"age": 1}),
            (validation_error(), self.INPUT),
            (validation_error(self.AGE), None),
            (type("ValidationError", (ValueError,), {})("of another package"), self.INPUT),
        ):
            failure = self.failure(error, input)
            self.assertEqual((failure.code, list(failure.issues)), ("SERVE_INFERENCE_FAILED", []))

    def test_an_output_that_is_the_whole_input_is_a_failure_of_the_app(self) -> None:
        inputs: Any = (None, "ABC", 5, {"a": 1}, ["a"], {})
        for value in inputs:
            failure = self.failure(validation_error((("y",), value, "Input should be a valid integer")), value)
            self.assertEqual(failure.code, "SERVE_INFERENCE_FAILED", value)

    def test_names_of_members_of_a_union_count_for_no_part_of_the_place(self) -> None:
        dog = {"kind": "dog", "n": "x", "x": [["q"]]}
        for place, value, text in (
            (("Dog", "n"), "x", "wrong"),
            (("n", "function-after[check(), int]"), "x", "wrong"),
            (("Dog", "age"), dog, "Field required"),
            (("age",), dict(dog), "Field required"),
            (("x", "list[list[int]]", 0, "list[int]", 0), "q", "wrong"),
            ((), dog, "wrong"),
        ):
            self.assertEqual(
                self.failure(validation_error((place, value, text)), dog).code, "SERVE_INPUT_INVALID", place
            )

    def test_the_message_counts_all_of_them(self) -> None:
        wrong = [((at,), "a", "wrong") for at in range(1000)]
        failure = self.failure(validation_error(*wrong), ["a"] * 1000)
        self.assertEqual(len(failure.issues), 100)
        self.assertEqual(failure.message, "The input is invalid: 0: wrong; 1: wrong; 2: wrong (and 997 more).")

    def test_many_and_long_ones_are_bounded(self) -> None:
        place = tuple("k" * 1000 for _ in range(100))
        held: Any = 1
        for part in place:
            held = {part: held}
        failure = self.failure(validation_error(*[(place, 1, "m" * 1000)] * 1000), held)
        self.assertEqual(len(failure.issues), 100)
        chars = sum(len(text) + sum(map(len, path)) for path, text in failure.issues)
        self.assertLess(chars, 151_000)


class Responses(unittest.TestCase):
    def test_it_is_the_class_of_potassium(self) -> None:
        self.assertIs(Response, potassium.Response)
        with self.assertRaisesRegex(
            ImportError, "banana_serve has no Potassium. It has: Context, HttpError, InitContext, Response, Tensor"
        ):
            exec("from banana_serve import Potassium")
        self.assertEqual(sorted(banana_serve.__all__), ["Context", "HttpError", "InitContext", "Response", "Tensor"])

    def test_only_a_whole_answer_with_an_error_may_answer_several_calls(self) -> None:
        for response, may in (
            (Response(422, json={"a": 1}), True),
            (Response(422, body="text"), True),
            (Response(404), True),
            (Response(200, json=1), False),
            (Response(422, body=iter([b"x"])), False),
        ):
            self.assertIs(may_answer_several(response), may, response)

    def test_a_test_client_gets_422_and_the_issues_of_a_wrong_input(self) -> None:
        app = potassium.Potassium("checks")

        @app.handler("/")
        def checks(context: Any, request: Any) -> Any:
            raise validation_error((("age",), request.json["age"], "wrong"))

        with app.test_client() as client:
            answer = client.post("/", json={"age": "old"})
            error: Any = answer.json
            self.assertEqual(answer.status_code, 422)
            self.assertEqual(error["error"]["issues"], [{"path": ["age"], "message": "wrong"}])

    def test_raised_or_returned_by_a_handler_it_is_the_answer_of_a_test_client(self) -> None:
        app = potassium.Potassium("statuses")
        again = Response(status=422, json={"wrong": "age"})

        @app.handler("/raises")
        def raises(context: Any, request: Any) -> Any:
            raise again

        @app.handler("/refuses")
        def refuses(context: Any, request: Any) -> Any:
            raise HttpError(409, "taken")

        with app.test_client() as client:
            for _ in range(2):
                answer = client.post("/raises", json={})
                self.assertEqual((answer.status_code, answer.json), (422, {"wrong": "age"}))
            refused = client.post("/refuses", json={})
            error: Any = refused.json
            self.assertEqual((refused.status_code, error["error"]["message"]), (409, "taken"))
            self.assertEqual((error["error"]["source"], error["error"]["begun"]), ("app", True))


if __name__ == "__main__":
    unittest.main()
