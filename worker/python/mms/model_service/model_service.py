"""Services in the first form: a class that is made with the model's name, folder, manifest and GPU."""

from __future__ import annotations

import ast
import json
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence

from banana_worker.stand_in import names_of_module
from banana_worker.text.json_limits import check_depth

from ..service import PredictionException

__all__ = ["ModelService", "SingleNodeService"]


class ModelService:
    """The base of a service that answers one request at a time, in `inference`."""

    # The context of the worker, once the service is initialized.
    _context: Any = None
    # The content of the file that the manifest names under `Model.Signature`; None if it names none.
    _signature: Optional[Dict[str, Any]] = None
    # The device, for services that set one.
    ctx: Any = None

    def __init__(
        self,
        model_name: str,
        model_dir: str,
        manifest: Optional[Dict[str, Any]],
        gpu: Optional[int] = None,
    ) -> None:
        self.ctx = None

    def initialize(self, context: Any) -> None:
        """Called once, after the service was made. Reads the signature. Raises ValueError if its file is missing."""
        self._context = context
        name = ((context.manifest or {}).get("Model") or {}).get("Signature")
        if not name:
            return
        path = os.path.join(context.system_properties["model_dir"], name)
        if not os.path.isfile(path):
            raise ValueError("Signature file is not found: {}".format(path))
        with open(path, encoding="utf-8") as file:
            self._signature = json.load(file)

    def inference(self, data: List[Any]) -> Any:
        """Answers one request. `data` has a value for each input that the signature names, else one value."""
        raise NotImplementedError("{} has no `inference` method".format(type(self).__name__))

    def ping(self) -> Any:
        """The service's health, which the server does not ask for."""
        return "healthy"

    @property
    def signature(self) -> Any:
        """The content of the file that the manifest names under `Model.Signature`; None until `initialize`, or
        without one."""
        return self._signature

    def handle(self, data: Sequence[Mapping[str, Any]], context: Any) -> List[Any]:
        """Answers the items of a batch one after the other."""
        return [_only_entry(self.inference(self._inputs_of(item))) for item in data]

    def _inputs_of(self, item: Mapping[str, Any]) -> List[Any]:
        signature = self._signature or {}
        names = [one.get("data_name") for one in signature.get("inputs") or ({},)]
        values = [_value_of(item, name) for name in names]
        if signature.get("input_type") == "application/json":
            return [_literal(value) for value in values]
        return values


class SingleNodeService(ModelService):
    """The base of a service in three steps: override at least `_inference`."""

    def inference(self, data: List[Any]) -> Any:
        return self._postprocess(self._inference(self._preprocess(data)))

    def _preprocess(self, data: Any) -> Any:
        """Turns the values of a request into the model's input; by default returns them unchanged."""
        return data

    def _inference(self, data: Any) -> Any:
        """Runs the model."""
        raise NotImplementedError("{} has no `_inference` method".format(type(self).__name__))

    def _postprocess(self, data: Any) -> Any:
        """Turns the model's output into the answer; by default returns it unchanged."""
        return data


def _value_of(item: Mapping[str, Any], name: Optional[str]) -> Any:
    for key in (name, "body", "data"):
        value = None if key is None else item.get(key)
        if value is not None:
            return value
    return None


# Python's parser takes 500 times the memory of a text, and a dict may take time in the square of its number keys, which
# a client can choose.
MAX_LITERAL_CHARS = 256 * 1024


def _literal(value: Any) -> Any:
    """Decodes JSON, or a short literal of Python, in a field without a type."""
    if not isinstance(value, (bytes, bytearray)):
        return value
    try:
        text = value.decode()
        check_depth(text)
        try:
            return json.loads(text)
        except ValueError:
            return _python_literal(text)
    except (ValueError, RecursionError):
        raise PredictionException("The input is not JSON.", 400) from None


def _python_literal(text: str) -> Any:
    """@raises ValueError"""
    if len(text) > MAX_LITERAL_CHARS:
        raise ValueError
    try:
        return ast.literal_eval(text)
    except (
        SyntaxError,
        TypeError,
        MemoryError,
    ):  # the last: a text is nested too deeply
        raise ValueError from None


def _only_entry(returned: Any) -> Any:
    """The output of a list with one entry."""
    return returned[0] if isinstance(returned, list) and len(returned) == 1 else returned


__getattr__ = names_of_module(__name__, __all__)
