"""The `context` of a custom service: its requests and its answers."""

import json
import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any, Dict
from unittest import mock

from mms.context import Context, ItemPart, ReadItem
from mms.service import PredictionException, Service


class FakeCall:
    def __init__(self, request_id: str, headers: Dict[str, str]) -> None:
        self.request_id = request_id
        self.headers = headers
        self.cancelled = False


def new_context() -> Context:
    return Context("m", "/models/m", None, 4, None, "1.2.3")


def with_items(count: int, headers: Any = None) -> Context:
    context = new_context()
    parts = [ItemPart("X-Real", None, "", b"x"), ItemPart("photo", None, "image/png", b"x")]
    items = [ReadItem({part.name: bytearray(b"x") for part in parts}, parts) for _ in range(count)]
    context._begin_batch(items, [FakeCall(f"r{i}", headers or {}) for i in range(count)])
    return context


def with_config(folder: str, name: str) -> Context:
    return Context("m", folder, {"model": {"configFile": name}}, 1, None, "1.2.3")


class ContextTest(unittest.TestCase):
    def test_system_properties_are_those_of_multi_model_server(self) -> None:
        self.assertEqual(
            new_context().system_properties,
            {
                "model_dir": "/models/m",
                "gpu_id": None,
                "batch_size": 4,
                "server_name": "MMS",
                "server_version": "1.2.3",
            },
        )

    def test_a_context_without_a_batch_has_no_items_and_raises_index_error(self) -> None:
        context = new_context()
        self.assertEqual((context.request_ids, context.request_processor, context.get_request_id()), (None, None, None))
        with self.assertRaisesRegex(IndexError, "there is no item 0 while the model is loaded"):
            context.set_response_status(200)
        for idx in (2, -1):
            with self.assertRaisesRegex(IndexError, f"there is no item {idx}; this batch has 2"):
                with_items(2).get_parts(idx)

    def test_requests_have_ids_by_the_numbers_of_their_items(self) -> None:
        context = with_items(2)
        self.assertEqual((context.request_ids, context.get_request_id(1)), ({0: "r0", 1: "r1"}, "r1"))

    def test_a_status_that_no_answer_can_have_is_refused_where_it_is_set(self) -> None:
        context = with_items(1)
        for code in (199, 600, 200.5, float("nan"), "many", None):
            with self.assertRaisesRegex(ValueError, "^status .* is not a whole number from 200 to 599$"):
                context.set_response_status(code)  # type: ignore[arg-type]
        self.assertEqual(context.get_response_status(0), (200, ""))

    def test_a_status_and_its_phrase_are_of_one_item_or_of_all(self) -> None:
        context = with_items(2)
        context.set_all_response_status(404, "No €")
        context.set_response_status("507", idx=1)  # type: ignore[arg-type]
        self.assertEqual([context.get_response_status(idx) for idx in (0, 1)], [(404, "No ?"), (507, "")])

    def test_a_status_is_set_and_read_by_its_older_names_too(self) -> None:
        context = with_items(2)
        context.set_http_response_status(code=507, idx=1)
        self.assertEqual([context.get_http_response_status(idx) for idx in (0, 1)], [(200, ""), (507, "")])

    def test_a_response_header_of_two_lines_is_refused_and_any_value_becomes_text(self) -> None:
        context = with_items(1)
        with self.assertRaisesRegex(ValueError, '"X-A" has a line break in it'):
            context.set_response_header(0, "X-A", "a\r\nSet-Cookie: b")
        context.set_response_header(0, "X-A", 5)
        context.set_response_header(0, "x-a", b"five")
        context.set_response_content_type(0, "text/csv")
        self.assertEqual(context.get_response_headers(0), {"x-a": "five", "content-type": "text/csv"})
        self.assertEqual(context.get_response_content_type(0), "text/csv")

    def test_a_field_of_a_form_cannot_pass_for_a_header_of_the_request(self) -> None:
        context = with_items(1, {"x-real": "10.0.0.1"})
        every = context.get_all_request_header(0)
        self.assertEqual(every["X-Real"], "10.0.0.1")
        self.assertEqual(every.get("PHOTO"), {"content-type": "image/png"})
        self.assertEqual(json.loads(json.dumps(every)), {"photo": {"content-type": "image/png"}, "x-real": "10.0.0.1"})
        self.assertTrue("X-REAL" in every and "other" not in every)
        self.assertEqual(every.get("other", "none"), "none")
        with self.assertRaises(KeyError):
            every["other"]
        self.assertEqual(context.get_request_header(0, "X-REAL"), "10.0.0.1")

    def test_the_configuration_in_the_archive_is_read_once_and_only_if_the_manifest_names_it(self) -> None:
        self.assertEqual(new_context().model_yaml_config, {})
        yaml = ModuleType("yaml")
        yaml.safe_load = lambda file: {"text": file.read()} if file.name.endswith("some.yaml") else None  # type: ignore[attr-defined]
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(sys.modules, {"yaml": yaml}):
            for name, content, config in (
                ("some.yaml", "a: 1", {"text": "a: 1"}),
                ("empty.yml", "", {}),
                ("some.json", '{"a": [1]}', {"a": [1]}),
            ):
                path = Path(folder, name)
                path.write_text(content)
                context = with_config(folder, name)
                self.assertEqual(context.model_yaml_config, config)
                path.unlink()
                self.assertEqual(context.model_yaml_config, config)

    def test_a_configuration_that_cannot_be_read_raises_with_the_reason(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "list.json").write_text("[1]")
            Path(folder, "some.yaml").write_text("a: 1")
            with self.assertRaisesRegex(ValueError, "list.json: a model's configuration is names and values, not list"):
                with_config(folder, "list.json").model_yaml_config
            with self.assertRaises(FileNotFoundError):
                with_config(folder, "gone.json").model_yaml_config
            with mock.patch.dict(sys.modules, {"yaml": None}):
                with self.assertRaisesRegex(AttributeError, "some.yaml is YAML, .*: pip install pyyaml"):
                    with_config(folder, "some.yaml").model_yaml_config
                self.assertFalse(hasattr(with_config(folder, "some.yaml"), "model_yaml_config"))

    def test_fields_are_there_until_the_batch_is_answered(self) -> None:
        context = with_items(1)
        self.assertEqual([part.name for part in context.get_parts(0)], ["X-Real", "photo"])
        context._end_batch()
        self.assertEqual((context.get_parts(0), context.get_request_id(0)), ([], "r0"))

    def test_a_call_whose_client_has_left_is_cancelled(self) -> None:
        context = with_items(2)
        assert context._calls is not None
        context._calls[1].cancelled = True
        self.assertEqual([context.cancelled(idx) for idx in (0, 1)], [False, True])

    def test_metrics_of_a_batch_have_its_request_ids_and_those_of_the_load_none(self) -> None:
        loading, running = new_context(), with_items(2)
        for context in (loading, running):
            context.metrics.add_counter("c", 1)
        self.assertEqual([c._take_metrics()[0].request_id for c in (loading, running)], [None, "r0,r1"])
        running._begin_batch([], [])
        self.assertEqual(running._take_metrics(), [])


class ServiceTest(unittest.TestCase):
    def test_a_handler_is_called_as_the_server_calls_it(self) -> None:
        def handle(data: Any, context: Context) -> Any:
            return [
                (item["body"], context.get_request_header(i, "accept"), context.get_request_id(i))
                for i, item in enumerate(data)
            ]

        service = Service("m", "/m", None, handle, None, 1)
        request = {
            "requestId": b"r1",
            "parameters": [{"name": "body", "value": 5, "contentType": "application/json"}],
            "headers": [{"name": b"Accept", "value": b"text/csv"}],
        }
        self.assertEqual(service.predict([request]), [(5, "text/csv", "r1")])
        self.assertEqual(service.context.system_properties["server_name"], "MMS")

    def test_an_exception_for_the_client_has_a_message_and_a_status(self) -> None:
        raised = PredictionException("no cat", 513)
        self.assertEqual((raised.message, raised.error_code, str(raised)), ("no cat", 513, "no cat : 513"))
        self.assertEqual(PredictionException("x").error_code, 500)


if __name__ == "__main__":
    unittest.main()
