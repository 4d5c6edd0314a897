"""The parts that bodies and answers of all tasks have: fields of JSON, numbers that an app returned, refusals."""

from __future__ import annotations

import math
import struct
from array import array
from operator import index
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple
from urllib.parse import parse_qs

from banana_worker.failures.sentences import kind_of
from banana_worker.formats.json import read_json
from banana_worker.formats.reply import BytesBody, Reply, StreamBody, assert_no_error
from banana_worker.formats.tensors.outputs import outputs_of
from banana_worker.protocol.errors import ServeError, bad_body, output_invalid
from banana_worker.protocol.messages import Call
from banana_worker.values.conversions import as_dict
from banana_worker.values.json_encoding import json_bytes
from banana_worker.values.tensor import Tensor, shown

Fields = Mapping[str, Any]


def bad_field(field: str, message: str) -> ServeError:
    return ServeError("SERVE_BAD_BODY", message, issues=[([field], message)])


def fields_of(body: bytes) -> Fields:
    """@raises ServeError SERVE_BAD_BODY"""
    value: Any = read_json(body) if body else None
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType]
    found = kind_of(value) if body else "empty"
    raise bad_body(f"The body must be a JSON object, not {found}.")


def whole_number(fields: Fields, name: str) -> Optional[int]:
    """None if the field is left out, or null. @raises ServeError SERVE_BAD_BODY for anything but a whole number from 1"""
    given = fields.get(name)
    if given is None:
        return None
    if type(given) in (int, float) and given >= 1 and given % 1 == 0:  # as JSON has it: 2.0 is 2
        return int(given)
    raise bad_field(name, f'"{name}" must be a whole number from 1, not {shown(given)}.')


def numbers_of(value: Any, name: str) -> Tuple[List[float], Sequence[int]]:
    """Numbers of any datatype, with their shape. @raises ServeError SERVE_OUTPUT_INVALID, also for NaN and infinities"""
    tensor = outputs_of({name: value}, None)[name]
    if tensor.datatype in ("BYTES", "BOOL"):
        raise output_invalid(f"The app returned {name} that are no numbers.")
    numbers = _numbers(tensor)
    single = array("f", numbers)
    if all(map(math.isfinite, single)):
        return numbers, tensor.shape
    wrong = next(number for number, short in zip(numbers, single) if not math.isfinite(short))
    raise output_invalid(f"The app returned {name} with a number that 32 bits cannot hold: {wrong}.")


def _numbers(tensor: Tensor) -> List[float]:
    if tensor.datatype == "FP16":
        return list(struct.unpack(f"={len(tensor.data)}e", tensor.data))
    if tensor.datatype == "BF16":
        return list(struct.unpack(f"={len(tensor.data)}f", array("I", [bits << 16 for bits in tensor.data]).tobytes()))
    return [float(number) for number in tensor.data]


def result_of(
    answer: Reply, call: Call, name: str, encode: Callable[[Any, str, Optional[int]], Dict[str, Any]]
) -> Reply:
    """Writes the app's value as what `encode` makes of it, the model's name and the number of tokens; the app may return the
    value as the item `name` of a dict, or of an object of fields, beside `tokens`. An error of the app's own keeps its status. @raises ServeError
    SERVE_HTTP_ERROR, SERVE_OUTPUT_INVALID"""
    head, body = answer.head, answer.body
    assert_no_error(answer)
    if isinstance(body, (StreamBody, BytesBody)):
        raise output_invalid(f"The app must return {name}, not a body of its own.")
    value, tokens = as_dict(body.value), None
    if isinstance(value, dict) and name in value:
        tokens = _count(value.get("tokens"))
        value = value[name]
    model = parse_qs(call.dialect_params).get("model", [""])[0]
    encoded = json_bytes(encode(value, model, tokens), call.ascii_json)
    return Reply(head._replace(content_type="application/json"), BytesBody(encoded))


def _count(tokens: Any) -> Optional[int]:
    """A count may be a whole number of numpy or torch, as a sum over a mask is."""
    if tokens is None:
        return None
    try:
        count = -1 if isinstance(tokens, bool) else index(tokens)
    except TypeError:
        count = -1
    if count >= 0:
        return count
    raise output_invalid(f"The app returned {shown(tokens)} as its number of tokens.")
