"""The base of TorchServe's handlers, with a stub in place of torch."""

import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Dict, Optional

from mms.context import Context
from ts.handler_utils.timer import timed
from ts.torch_handler.base_handler import BaseHandler


class Tensor(list):  # type: ignore[type-arg]
    device = ""

    def to(self, device: str) -> "Tensor":
        self.device = device
        return self

    def tolist(self) -> Any:
        return list(self)


class NoGrad:
    def __enter__(self) -> None:
        torch.gradients = False

    def __exit__(self, *_: object) -> None:
        torch.gradients = True


class Doubler:
    def __init__(self) -> None:
        self.factor = 2
        self.training = True
        self.device = ""

    def to(self, device: str) -> "Doubler":
        self.device = device
        return self

    def eval(self) -> None:
        self.training = False

    def load_state_dict(self, state: Dict[str, int]) -> None:
        self.factor = state["factor"]

    def __call__(self, data: Tensor) -> Tensor:
        assert not torch.gradients
        return Tensor(self.factor * one for one in data)


torch: Any = ModuleType("torch")
torch.gradients = True
torch.cuda = SimpleNamespace(is_available=lambda: False)
torch.device = str
torch.no_grad = NoGrad
torch.as_tensor = lambda data, device: Tensor(data)
torch.jit = SimpleNamespace(load=lambda path, map_location: Doubler().to(map_location))
torch.load = lambda path, map_location: {"factor": 3}


class BaseHandlerTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        before = sys.modules.get("torch")
        sys.modules["torch"] = torch
        self.addCleanup(sys.modules.pop, "torch")
        if before is not None:
            self.addCleanup(sys.modules.__setitem__, "torch", before)

    def context(self, model: Optional[Dict[str, str]]) -> Context:
        manifest = None if model is None else {"model": model}
        context = Context("m", str(self.folder), manifest, 4, None, "1")
        context._begin_batch([], [])
        return context

    def test_torchscript_is_loaded_and_a_batch_goes_through_three_steps(self) -> None:
        (self.folder / "model.pt").write_text("")
        (self.folder / "index_to_name.json").write_text('{"0": "cat"}')
        context = self.context({"serializedFile": "model.pt"})
        handler = BaseHandler()
        handler.initialize(context)
        self.assertEqual((handler.device, handler.model.training, handler.mapping), ("cpu", False, {"0": "cat"}))
        self.assertTrue(handler.initialized)
        self.assertEqual(handler.handle([1, 2], context), [2, 4])
        self.assertEqual([one.name for one in context._take_metrics()], ["HandlerTime"])

    def test_class_numbers_become_names_in_every_form_of_the_file(self) -> None:
        (self.folder / "model.pt").write_text("")
        names = self.folder / "index_to_name.json"
        for content, mapping in (
            ('{"0": "cat", "1": ["n02", "dog"]}', {"0": "cat", "1": "dog"}),
            ('{"object_type_names": ["cat", "dog"]}', {"0": "cat", "1": "dog"}),
        ):
            names.write_text(content)
            handler = BaseHandler()
            handler.initialize(self.context({"serializedFile": "model.pt"}))
            self.assertEqual(handler.mapping, mapping)
        names.write_text('["cat"]')
        with self.assertRaisesRegex(ValueError, "index_to_name.json: the names of classes must be an object"):
            BaseHandler().initialize(self.context({"serializedFile": "model.pt"}))

    def test_a_handler_has_the_configuration_of_its_archive(self) -> None:
        (self.folder / "model.pt").write_text("")
        (self.folder / "own.json").write_text('{"handler": {"size": 3}}')
        handler = BaseHandler()
        handler.initialize(self.context({"serializedFile": "model.pt", "configFile": "own.json"}))
        self.assertEqual(handler.model_yaml_config, {"handler": {"size": 3}})
        handler.initialize(self.context({"serializedFile": "model.pt"}))
        self.assertEqual(handler.model_yaml_config, {})

    def test_a_handlers_own_handle_may_call_is_explain_and_is_describe(self) -> None:
        class Handler(BaseHandler):
            def handle(self, data: Any, context: Any) -> Any:
                return ["explained" if self._is_explain() or self._is_describe() else "answered"]

        self.assertEqual(Handler().handle([{}], None), ["answered"])

    def test_a_saved_state_is_loaded_into_the_only_class_of_the_model_file(self) -> None:
        (self.folder / "model.pth").write_text("")
        (self.folder / "net_of_test.py").write_text("from test_base_handler import Doubler\nclass Net(Doubler): pass\n")
        handler = BaseHandler()
        handler.initialize(self.context({"serializedFile": "model.pth", "modelFile": "net_of_test.py"}))
        self.addCleanup(sys.modules.pop, "net_of_test")
        self.assertEqual((handler.model.factor, handler.model.device), (3, "cpu"))

    def test_an_error_names_the_missing_entry_of_the_manifest(self) -> None:
        (self.folder / "two.py").write_text("class A: pass\nclass B: pass\n")
        self.addCleanup(sys.modules.pop, "two", None)
        for model, kind, message in (
            (
                None,
                RuntimeError,
                "names neither model.serializedFile nor model.modelFile: .*`initialize` of BaseHandler",
            ),
            ({"serializedFile": "gone.pt"}, RuntimeError, "gone.pt does not exist, and the manifest names it"),
            ({"modelFile": "gone.py"}, RuntimeError, "gone.py does not exist, and the manifest names it"),
            (
                {"modelFile": "two.py"},
                ValueError,
                "two.py: a model file must define exactly one class; this one defines: A, B",
            ),
        ):
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                BaseHandler().initialize(self.context(model))

    def test_a_step_is_measured_where_the_handler_asks_for_it(self) -> None:
        class Handler(BaseHandler):
            @timed
            def step(self, by: int) -> int:
                return by + 1

        handler = Handler()
        self.assertEqual(handler.step(1), 2)
        handler.context = self.context(None)
        handler.context.model_yaml_config = {"handler": {"profile": True}}
        self.assertEqual(handler.step(by=2), 3)
        self.assertEqual(
            [(one.name, one.kind) for one in handler.context._take_metrics()], [("ts_handler_step", "time")]
        )

    def test_the_three_steps_of_the_base_are_measured_where_the_handler_asks_for_it(self) -> None:
        (self.folder / "model.pt").write_text("")
        (self.folder / "own.json").write_text('{"handler": {"profile": true}}')
        context = self.context({"serializedFile": "model.pt", "configFile": "own.json"})
        handler = BaseHandler()
        handler.initialize(context)
        handler.handle([1], context)
        steps = ["ts_handler_preprocess", "ts_handler_inference", "ts_handler_postprocess"]
        self.assertEqual([one.name for one in context._take_metrics()], [*steps, "HandlerTime"])


if __name__ == "__main__":
    unittest.main()
