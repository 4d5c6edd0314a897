"""Types that an app declares: what is checked, and what is not."""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
import unittest
from datetime import timedelta
from decimal import Decimal
from types import ModuleType
from typing import Any, Dict, ForwardRef, List, TypedDict
from unittest import mock

import potassium
from banana_serve import Response
from banana_worker.adapters.banana_app import BananaApp, annotated_schemas
from banana_worker.formats.reply import JsonBody, Reply
from banana_worker.process.hint_once import write_hints_to
from banana_worker.protocol.errors import ServeError
from banana_worker.run.schemas import declared_schemas
from banana_worker.values.json_encoding import json_bytes

try:
    import pydantic

    HAS_PYDANTIC = hasattr(pydantic, "TypeAdapter")
except ImportError:
    HAS_PYDANTIC = False


@dataclasses.dataclass
class In:
    prompt: str
    steps: int = 10


@dataclasses.dataclass
class Out:
    text: str


def hints_of(run: Any) -> List[str]:
    lines: List[str] = []
    write_hints_to(lines.append)
    try:
        run()
    finally:
        write_hints_to(None)
    return lines


class WithoutPydantic(unittest.TestCase):
    def test_nothing_is_checked_and_one_line_says_so(self) -> None:
        old = ModuleType("pydantic")
        old.VERSION = "1.10.4"  # type: ignore[attr-defined]
        for module, why in ((None, "pydantic 2 is not installed"), (old, "pydantic is 1.10.4, and 2 is needed")):
            with mock.patch.dict(sys.modules, {"pydantic": module}):
                given: List[Any] = []
                lines = hints_of(lambda given=given: given.append(declared_schemas(In, Out)))
            self.assertEqual(given, [None])
            self.assertEqual(len(lines), 1)
            self.assertIn(why, lines[0])

    def test_other_annotations_import_nothing(self) -> None:
        def untyped(model_inputs: Any) -> Any: ...

        def plain(model_inputs: Dict[str, Any]) -> "dict": ...

        def broken(model_inputs: "Missing") -> "No[": ...  # type: ignore # noqa: F821, F722

        class Late:
            __signature__ = inspect.signature(untyped)

            def __call__(self, model_inputs: Any) -> None: ...

            @property
            def __annotations__(self) -> Dict[str, Any]:  # type: ignore[override]
                """As those of a function of Python 3.14."""
                raise NameError("name 'Missing' is not defined")

        with mock.patch.dict(sys.modules, {"pydantic": None}):
            for function in (untyped, plain, broken, Late(), len, lambda a: a):
                given: List[Any] = []
                self.assertEqual(hints_of(lambda: given.append(annotated_schemas(function, False))), [], function)
                self.assertEqual(given, [None])


@unittest.skipUnless(HAS_PYDANTIC, "pydantic 2 is missing: pip install pydantic")
class WithPydantic(unittest.TestCase):
    def refused(self, run: Any) -> ServeError:
        with self.assertRaises(ServeError) as raised:
            run()
        return raised.exception

    def test_an_annotation_that_is_text_is_resolved_and_the_function_gets_the_instance(self) -> None:
        def inference(model_inputs: In) -> Out: ...

        schemas: Any = annotated_schemas(inference, False)
        self.assertEqual(schemas.accept_input({"prompt": "a"}), In("a", 10))
        error = self.refused(lambda: schemas.accept_input({"prompt": 5, "steps": "x"}))
        self.assertEqual(error.code, "SERVE_INPUT_INVALID")
        self.assertEqual([path for path, _ in error.issues], [["prompt"], ["steps"]])
        wrong = self.refused(lambda: schemas.accept_output({"text": 5}))
        self.assertEqual(wrong.code, "SERVE_OUTPUT_INVALID")
        self.assertIn("text: ", wrong.message)

    def test_models_and_typed_dicts_are_checked_too(self) -> None:
        from typing_extensions import TypedDict

        class Model(pydantic.BaseModel):
            a: int

        Typed = TypedDict("Typed", {"a": int})
        for kind in (Model, Typed):
            schemas: Any = declared_schemas(kind, None)
            self.assertEqual(dict(schemas.accept_input({"a": "1"})), {"a": 1})
            self.assertEqual(self.refused(lambda: schemas.accept_input({})).issues[0][0], ["a"])

    @unittest.skipUnless(sys.version_info < (3, 12), "pydantic takes it from Python 3.12 on")
    def test_a_type_that_pydantic_refuses_is_not_checked_and_one_line_says_so(self) -> None:
        Refused = TypedDict("Refused", {"a": int})
        lines = hints_of(lambda: self.assertIsNone(declared_schemas(Refused, None)))
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], r"Refused: .*typing_extensions\.TypedDict.*[^.]\. \(This is logged")

    def test_a_batch_function_declares_the_types_of_items(self) -> None:
        module = ModuleType("app")

        def inference_batch(inputs: List[In]) -> List[Out]: ...

        module.inference_batch = inference_batch  # type: ignore[attr-defined]
        schemas: Any = BananaApp(module).schemas("/")
        self.assertEqual(schemas.accept_input({"prompt": "a"}), In("a", 10))
        self.assertEqual(schemas.accept_output({"text": "a"}), Out("a"))

    def test_annotations_that_are_text_or_have_it_are_resolved(self) -> None:
        def one(model_inputs: Any) -> Any: ...

        for is_batch, texts in (
            (False, ["In", ForwardRef("In")]),
            (True, ["List[In]", List["In"], "List['In']"]),
        ):
            for text in texts:
                one.__annotations__ = {"model_inputs": text}
                schemas: Any = annotated_schemas(one, is_batch)
                self.assertIsNotNone(schemas, text)
                self.assertEqual(schemas.accept_input({"prompt": "a"}), In("a", 10))

    def test_the_schema_of_an_answer_is_that_of_what_is_written(self) -> None:
        class Inner(pydantic.BaseModel):
            model_config = {"serialize_by_alias": True}
            count: int = pydantic.Field(default=1, serialization_alias="Count")

        class Model(pydantic.BaseModel):
            model_config = {"populate_by_name": True}
            inner: Inner = Inner()
            price: Decimal = Decimal("1.5")
            took: timedelta = timedelta(seconds=2)
            name: str = pydantic.Field(default="a", alias="Name")

        schemas: Any = declared_schemas(Model, Model)
        answer = json.loads(json_bytes(schemas.accept_output({})))
        self.assertEqual(answer, {"inner": {"Count": 1}, "price": 1.5, "took": 2.0, "name": "a"})
        input, output = (json.loads(schemas.json_schemas()[side]) for side in ("input", "output"))
        self.assertEqual(sorted(input["properties"]), ["Name", "inner", "price", "took"])
        self.assertEqual(list(output["properties"]), list(answer))
        self.assertEqual({output["properties"][name]["type"] for name in ("price", "took")}, {"number"})
        self.assertEqual(list(output["$defs"]["Inner"]["properties"]), ["Count"])

    def test_an_answer_that_is_a_response_is_checked_if_it_is_json_of_a_success(self) -> None:
        schemas: Any = declared_schemas(None, Out)
        good = schemas.accept_output(Response(json={"text": "a"}))
        self.assertIsInstance(good, Reply)
        self.assertEqual(good.body, JsonBody(Out("a")))
        self.refused(lambda: schemas.accept_output(Response(json={})))
        for other in (b"bytes", iter([1]), ValueError("x")):
            self.assertIs(schemas.accept_output(other), other)
        self.assertEqual(schemas.accept_output(Response(404, json={})).head.status, 404)

    def test_a_signature_beside_a_type_is_an_error(self) -> None:
        module = ModuleType("app")

        def inference(model_inputs: In) -> Any: ...

        module.inference = inference  # type: ignore[attr-defined]
        module.signature = {"inputs": [], "outputs": []}  # type: ignore[attr-defined]
        with self.assertRaisesRegex(TypeError, "`signature`; keep one of them"):
            BananaApp(module)

    def test_the_schemas_of_both_sides_are_told(self) -> None:
        schemas: Any = declared_schemas(In, Out)
        texts = schemas.json_schemas()
        self.assertEqual(sorted(texts), ["input", "output"])
        self.assertIn('"prompt"', texts["input"])

    def test_a_test_client_checks_too(self) -> None:
        app = potassium.Potassium("types")

        @app.handler("/", input=In, output=Out)
        def handler(context: Any, request: Any) -> Any:
            return Response(json={"text": request.json.prompt, "more": 1})

        with app.test_client() as client:
            self.assertEqual(client.post("/", json={"prompt": "a"}).json, {"text": "a"})
            refused: Any = client.post("/", json={})
            self.assertEqual((refused.status_code, refused.json["error"]["code"]), (422, "SERVE_INPUT_INVALID"))


if __name__ == "__main__":
    unittest.main()
