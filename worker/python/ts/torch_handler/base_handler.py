"""The base of most handlers on torch, which is imported when the model is loaded."""

from __future__ import annotations

import os
import sys
import time
from importlib import util
from typing import Any, Dict, List, Optional

from banana_worker.stand_in import names_of_module

from ..handler_utils.timer import timed
from ..utils.util import list_classes_from_module, load_label_mapping

__all__ = ["BaseHandler"]


class BaseHandler:
    """Loads the model that the manifest names, and answers a batch in three steps, each of which may be overridden."""

    def __init__(self) -> None:
        self.model: Any = None
        # The names of classes in `index_to_name.json` of the model's folder; None without one.
        self.mapping: Optional[Dict[str, Any]] = None
        self.device: Any = None
        self.map_location: Optional[str] = None
        self.initialized = False
        self.context: Any = None
        self.manifest: Optional[Dict[str, Any]] = None
        self.model_pt_path: Optional[str] = None
        # The configuration in the model's archive.
        self.model_yaml_config: Dict[str, Any] = {}
        self.explain = False
        self.target = 0

    def initialize(self, context: Any) -> None:
        """Loads the model of `model.serializedFile`: TorchScript, or the state of the class in `model.modelFile`.

        Raises RuntimeError if the manifest names neither, or a file is missing.
        """
        import torch  # pyright: ignore[reportMissingImports]

        self.context = context
        self.model_yaml_config = getattr(context, "model_yaml_config", {})
        self.manifest = context.manifest
        properties = context.system_properties
        model_dir = properties["model_dir"]
        on_gpu = properties.get("gpu_id") is not None and torch.cuda.is_available()
        self.map_location = "cuda" if on_gpu else "cpu"
        self.device = torch.device("cuda:{}".format(properties["gpu_id"]) if on_gpu else "cpu")
        self.model = self._load_model(model_dir, (self.manifest or {}).get("model") or {})
        self.model.eval()
        self.mapping = _mapping_in(model_dir)
        self.initialized = True

    @timed
    def preprocess(self, data: List[Any]) -> Any:
        """Turns the items into a tensor. Override it unless they are numbers, or nested lists of numbers."""
        import torch  # pyright: ignore[reportMissingImports]

        return torch.as_tensor(data, device=self.device)

    @timed
    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs the model without gradients."""
        import torch  # pyright: ignore[reportMissingImports]

        with torch.no_grad():
            return self.model(data.to(self.device), *args, **kwargs)

    @timed
    def postprocess(self, data: Any) -> List[Any]:
        """Makes one result for each item, in their order."""
        return data.tolist()

    def handle(self, data: List[Any], context: Any) -> Any:
        """Answers a batch: `preprocess`, `inference`, `postprocess`. The time is the metric `HandlerTime`."""
        started_at = time.perf_counter()
        self.context = context
        output = self.postprocess(self.inference(self.preprocess(data)))
        context.metrics.add_time("HandlerTime", round((time.perf_counter() - started_at) * 1000, 2), None, "ms")
        return output

    def get_device(self) -> Any:
        return self.device

    def _is_explain(self) -> bool:
        """False, for handlers whose own `handle` asks: this server has no path for explanations."""
        return False

    def _is_describe(self) -> bool:
        """False, as above: the server describes its models by itself."""
        return False

    def _load_model(self, model_dir: str, model: Dict[str, Any]) -> Any:
        serialized, model_file = model.get("serializedFile"), model.get("modelFile")
        self.model_pt_path = os.path.join(model_dir, serialized) if serialized else None
        if model_file:
            loaded = self._load_pickled_model(model_dir, model_file, self.model_pt_path)
            return loaded.to(self.device)
        if self.model_pt_path is None:
            raise RuntimeError(
                "the manifest names neither model.serializedFile nor model.modelFile: "
                "make the archive with --serialized-file, or override `initialize` of {}".format(type(self).__name__)
            )
        return self._load_torchscript_model(self.model_pt_path)

    def _load_torchscript_model(self, model_pt_path: str) -> Any:
        import torch  # pyright: ignore[reportMissingImports]

        _assert_file(model_pt_path)
        return torch.jit.load(model_pt_path, map_location=self.device)

    def _load_pickled_model(self, model_dir: str, model_file: str, model_pt_path: Optional[str]) -> Any:
        """The only class of the file, with the saved state. Raises ValueError if it has none, or several."""
        import torch  # pyright: ignore[reportMissingImports]

        path = os.path.join(model_dir, model_file)
        _assert_file(path)
        made = _only_class(path)()
        if model_pt_path is not None:
            _assert_file(model_pt_path)
            made.load_state_dict(torch.load(model_pt_path, map_location=self.device))
        return made


def _assert_file(path: str) -> None:
    if not os.path.isfile(path):
        raise RuntimeError("{} does not exist, and the manifest names it".format(path))


def _only_class(path: str) -> Any:
    name = os.path.splitext(os.path.basename(path))[0]
    module = sys.modules.get(name)
    if module is None or os.path.realpath(getattr(module, "__file__", None) or "") != os.path.realpath(path):
        spec = util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise RuntimeError("{} is not a Python file".format(path))
        module = util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    classes = list_classes_from_module(module)
    if len(classes) == 1:
        return classes[0]
    names = ", ".join(one.__name__ for one in classes) or "none"
    raise ValueError("{}: a model file must define exactly one class; this one defines: {}".format(path, names))


def _mapping_in(model_dir: str) -> Optional[Dict[str, Any]]:
    path = os.path.join(model_dir, "index_to_name.json")
    return load_label_mapping(path) if os.path.isfile(path) else None


__getattr__ = names_of_module(__name__, __all__)
