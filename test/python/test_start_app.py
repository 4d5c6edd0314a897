"""Errors of apps that cannot start."""

from __future__ import annotations

import unittest
from types import ModuleType, SimpleNamespace
from typing import Any

from banana_serve import Response
from banana_worker.adapters.banana_app import from_banana_app
from banana_worker.load.explain_load_error import StartFailure
from banana_worker.load.start_app import init_app, loaded_info
from banana_worker.run.call_context import InitContext, WorkerInfo
from banana_worker.run.loaded_app import LoadedApp


def refuse(*_: Any) -> Any:
    raise KeyboardInterrupt


class Unshowable(Exception):
    __class__ = __cause__ = __traceback__ = exceptions = reason = property(refuse)  # type: ignore[assignment]
    __str__ = refuse


def failure_of(thrown: BaseException) -> StartFailure:
    def init(ctx: Any) -> None:
        raise thrown

    app: Any = LoadedApp()
    app.init = init
    nothing: Any = None
    shared = InitContext(WorkerInfo(0, None, 1), nothing, nothing)
    tasks = SimpleNamespace(settled=lambda output, is_cancelled: output)
    host: Any = SimpleNamespace(app=app, shared=shared, tasks=tasks, channel=None)
    spec: Any = SimpleNamespace(app="/srv/app.py")
    try:
        init_app(host, spec)
    except StartFailure as failure:
        return failure
    raise AssertionError("it has started")


def module_with(**names: Any) -> ModuleType:
    module = ModuleType("app")
    vars(module).update(names)
    return module


class Failures(unittest.TestCase):
    def test_an_init_that_raises_is_reported_with_its_place_and_exception(self) -> None:
        place = r"test_start_app\.py:\d+: init raised: "
        self.assertRegex(failure_of(ValueError("no weights")).message, place + "ValueError: no weights$")
        self.assertRegex(failure_of(KeyError()).message, place + "KeyError$")

    def test_an_exception_that_cannot_be_shown_is_reported_too(self) -> None:
        said = "init raised: Unshowable: an exception that cannot be shown"
        self.assertIn(said, failure_of(Unshowable()).message)

    def test_the_answer_of_the_example_may_be_a_response(self) -> None:
        def refuses(model_inputs: Any) -> Any:
            raise Response(status=409, json={"taken": model_inputs})

        for inference in (refuses, lambda model_inputs: Response(status=201, json=model_inputs)):
            host: Any = SimpleNamespace(
                app=from_banana_app(module_with(inference=inference, example={"prompt": "a"})),
                shared=InitContext(WorkerInfo(0, None, 1), None, None),  # type: ignore[arg-type]
                tasks=SimpleNamespace(settled=lambda output, is_cancelled: output),
                channel=None,
                prints=SimpleNamespace(begin=lambda request_id: None, end=lambda: None),
            )
            init_app(host, SimpleNamespace(app="/srv/app.py"))  # type: ignore[arg-type]

    def test_the_front_learns_whether_there_is_a_shutdown(self) -> None:
        for app, expected in (({}, False), ({"shutdown": print}, True)):
            loaded: Any = from_banana_app(module_with(inference=print, **app))
            self.assertIs(loaded_info(loaded, 1)["shutdown"], expected)

    def test_the_front_learns_how_the_app_is_written(self) -> None:
        self.assertEqual(loaded_info(from_banana_app(module_with(inference=print)), 1)["api"], "banana")

    def test_the_front_learns_the_signature(self) -> None:
        x = {"name": "x", "datatype": "FP32", "shape": [-1, 2]}
        loaded: Any = from_banana_app(module_with(inference=print, signature={"inputs": [x], "outputs": []}))
        self.assertEqual(loaded_info(loaded, 1)["signature"], {"inputs": [x], "outputs": []})
        self.assertNotIn("signature", loaded_info(from_banana_app(module_with(inference=print)), 1))

    def test_the_front_learns_the_task_and_other_values_of_the_name_are_the_apps_own(self) -> None:
        def task_of(given: Any) -> Any:
            return loaded_info(from_banana_app(module_with(inference=print, task=given)), 1).get("task")

        self.assertEqual(task_of("rerank"), "rerank")
        for own in ("train", 1, None, ["embedding"], len):
            self.assertIsNone(task_of(own))
        for wrong in ("embeddings", "Reranker"):
            with self.assertRaisesRegex(TypeError, "`task` is .*; there are embedding, rerank$"):
                task_of(wrong)


if __name__ == "__main__":
    unittest.main()
