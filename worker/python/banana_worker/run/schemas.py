"""Checks inputs and outputs by the types that an app declares, with pydantic 2: its models, dataclasses and TypedDicts.

Nothing is imported for an app that declares none of these.
"""

from __future__ import annotations

import importlib
import json
from typing import Any, Dict, Optional

from banana_worker.failures.invalid_input import input_invalid, issues_of, sentence_of
from banana_worker.failures.thrown import described
from banana_worker.formats.reply import JsonBody, Reply
from banana_worker.process.hint_once import hint_once
from banana_worker.protocol.errors import output_invalid
from banana_worker.protocol.tables import MAX_SCHEMA_BYTES
from banana_worker.reply.answer import reply_of
from banana_worker.reply.response import Response
from banana_worker.values.conversions import simpler


class Schemas:
    """Checks the inputs and the outputs of a route."""

    def __init__(self, input: Any, output: Any) -> None:
        """`input`, `output`: TypeAdapters; None for what is not checked."""
        self._input = input
        self._output = output

    def accept_input(self, value: Any) -> Any:
        """The input that the app's function gets. @raises ServeError SERVE_INPUT_INVALID"""
        if self._input is None:
            return value
        try:
            return self._input.validate_python(_with_lists(value))
        except _validation_error() as wrong:
            raise input_invalid(issues_of(wrong)) from None

    def accept_output(self, output: Any) -> Any:
        """The answer as its type has it; streams, bytes, exceptions and errors as they are. @raises ServeError
        SERVE_OUTPUT_INVALID"""
        if self._output is None or isinstance(output, _BYTES):
            return output
        if isinstance(output, (Response, Reply)):
            return self._accept_reply(reply_of(output))
        if isinstance(output, BaseException) or hasattr(output, "__next__") or hasattr(output, "__anext__"):
            return output
        return self._checked_output(output)

    def _accept_reply(self, reply: Reply) -> Reply:
        if reply.head.status > 299 or not isinstance(reply.body, JsonBody):
            return reply
        return Reply(reply.head, JsonBody(self._checked_output(reply.body.value)))

    def _checked_output(self, value: Any) -> Any:
        try:
            return self._output.validate_python(_with_lists(value))
        except _validation_error() as wrong:
            sentence = sentence_of(issues_of(wrong))
            raise output_invalid(f"The model's output does not fit its type: {sentence}.") from None

    def json_schemas(self) -> Dict[str, str]:
        """JSON Schemas as text, for `input` and `output` as far as they are known."""
        sides = (("input", self._input), ("output", self._output))
        texts = {side: _json_schema(adapter, side) for side, adapter in sides if adapter is not None}
        return {side: text for side, text in texts.items() if text}


_BYTES = (bytes, bytearray, memoryview)


def declared_schemas(input: Any, output: Any) -> Optional[Schemas]:
    """None if neither is a type that pydantic can check."""
    adapters = _adapter(input), _adapter(output)
    return None if adapters == (None, None) else Schemas(*adapters)


def is_checkable(kind: Any) -> bool:
    """Whether it is a model of pydantic, a dataclass or a TypedDict."""
    if not isinstance(kind, type):
        return False
    is_typed_dict = issubclass(kind, dict) and hasattr(kind, "__total__")
    return is_typed_dict or hasattr(kind, "__dataclass_fields__") or hasattr(kind, "parse_obj")


def _adapter(kind: Any) -> Any:
    """A TypeAdapter; None for a type that is not checked."""
    if not is_checkable(kind):
        return None
    try:
        pydantic = importlib.import_module("pydantic")
    except ImportError:
        return _unchecked("pydantic 2 is not installed")
    if not hasattr(pydantic, "TypeAdapter"):
        return _unchecked(f"pydantic is {getattr(pydantic, 'VERSION', 'an old one')}, and 2 is needed")
    try:
        return pydantic.TypeAdapter(kind)
    except Exception as wrong:
        return _unchecked(f"{kind.__name__}: {described(wrong).splitlines()[0]}")


def _unchecked(why: str) -> None:
    hint_once("unchecked types", f"Inputs and outputs are not checked by their types: {why.rstrip('.')}.")


def _validation_error() -> Any:
    return importlib.import_module("pydantic").ValidationError


def _with_lists(value: Any) -> Any:
    """The value with arrays and tensors as lists: pydantic knows lists of numbers."""
    if isinstance(value, dict):
        return {key: _with_lists(item) for key, item in value.items()}
    if isinstance(value, list):
        return value if all(type(item) in _NUMBERS for item in value) else [_with_lists(item) for item in value]
    return simpler(value) if hasattr(value, "tolist") else value


_NUMBERS = (int, float, str, bool)


def _json_schema(adapter: Any, side: str) -> str:
    """Its JSON Schema; empty if it has none, or one that is too long."""
    try:
        schema = adapter.json_schema() if side == "input" else _schema_of_answers(adapter)
        text = json.dumps(schema, separators=(",", ":"))
    except Exception as wrong:
        text, why = "", described(wrong).splitlines()[0]
    else:
        why = f"it is too large, {len(text)} bytes of JSON"
    if text and len(text) <= MAX_SCHEMA_BYTES:
        return text
    hint = f"The type of an {side} is not in /openapi.json, which leaves it free: {why.rstrip('.')}."
    hint_once("json schema", hint)
    return ""


def _schema_of_answers(adapter: Any) -> Any:
    """The JSON Schema of answers as `values/conversions.py` writes them, which is not always what pydantic would write: fields
    by their names unless a model asks for its aliases, decimals and durations as numbers."""
    base = importlib.import_module("pydantic.json_schema").GenerateJsonSchema

    class AsWritten(base):  # type: ignore[misc, valid-type]
        def model_schema(self, schema: Any) -> Any:
            outer, self.by_alias = self.by_alias, schema["cls"].model_config.get("serialize_by_alias", False)
            try:
                return super().model_schema(schema)
            finally:
                self.by_alias = outer

        def decimal_schema(self, schema: Any) -> Any:
            return {"type": "number"}

        timedelta_schema = decimal_schema

    return adapter.json_schema(mode="serialization", by_alias=False, schema_generator=AsWritten)
