"""Reads requests of the Open Inference Protocol: JSON, with the tensors in it or, as raw bytes, behind it. The signature of an
app checks them, or says all of a body without JSON."""

from __future__ import annotations

import json
import math
import struct
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from banana_worker.formats.json import WORDS, read_json
from banana_worker.formats.tensors.elements import Refuse, has_infinity, tensor_of_bytes, tensor_of_list
from banana_worker.protocol.errors import ServeError, bad_body
from banana_worker.values.tensor import (
    DATATYPES,
    MAX_DIMENSIONS,
    Signature,
    Tensor,
    TensorSpec,
    problem_of_shape,
    shown,
    size_of,
)

Parameter = Union[str, int, float, bool]

_HEADER = "Inference-Header-Content-Length"

# Largest product of the other sizes of a tensor without elements. Nothing in the body stands for them, but a model may
# still make outputs of so many rows: a body of 200 bytes would fill the memory.
_MAX_EMPTY_SIZE = 2**20


class InferRequest(NamedTuple):
    # Empty if there is none.
    id: str = ""
    inputs: Mapping[str, Tensor] = {}
    # The request's parameters, without those of the protocol.
    params: Mapping[str, Parameter] = {}
    # Whether each output leaves as bytes, by name; None for all outputs.
    wanted: Optional[Mapping[str, bool]] = None
    # Whether the outputs leave as bytes if none are named.
    binary: bool = False


def read_request(body: bytes, json_bytes: Optional[int], signature: Optional[Signature]) -> InferRequest:
    """`json_bytes`: the header Inference-Header-Content-Length, or None without it. 0: the whole body is the one input
    of `signature`. @raises ServeError SERVE_BAD_BODY that names the tensor"""
    if json_bytes == 0:
        return InferRequest(inputs=raw_input(body, signature), binary=True)
    if json_bytes is not None and json_bytes > len(body):
        raise bad_body(f"{_HEADER} is {json_bytes}, but the body has {len(body)} bytes.")
    what = "The body" if json_bytes is None else "The JSON at the beginning of the body"
    request = _read_exact(body if json_bytes is None else body[:json_bytes], what)
    if not isinstance(request, dict):
        raise bad_body(f'{what} must be an object with "inputs", not {_kind(request)}.')
    return _RequestReader(request, None if json_bytes is None else memoryview(body)[json_bytes:]).read()


def _read_exact(body: bytes, what: str) -> object:
    """Python's integers are exact, but a float beyond the largest becomes an infinity without a word."""
    request: Any = read_json(body, what, decoder=WORDS)
    inputs: Any = request.get("inputs") if isinstance(request, dict) else None
    for tensor in inputs if isinstance(inputs, list) else ():
        is_float = isinstance(tensor, dict) and tensor.get("datatype") in ("FP16", "BF16", "FP32", "FP64")
        if is_float and has_infinity(tensor.get("data"), MAX_DIMENSIONS):
            return read_json(body, what, decoder=_FINITE)
    return request


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), -float("inf")):
        raise ValueError(f"{text[:60]} is beyond the largest number")
    return value


_FINITE = json.JSONDecoder(parse_float=_finite)


class _RequestReader:
    """One request; it passes over the bytes behind the JSON, from one tensor to the next."""

    def __init__(self, request: Dict[str, Any], data: Optional[memoryview]) -> None:
        self._request = request
        # The bytes of tensors that are not read yet; None if the request has the header of none.
        self._bytes = data

    def read(self) -> InferRequest:
        request_id = _or_else(self._request.get("id"), "")
        if not isinstance(request_id, str):
            raise bad_body(f'The request\'s "id" must be text, not {_kind(request_id)}.')
        params, binary = _read_parameters(self._request)
        wanted = _read_wanted(_or_else(self._request.get("outputs"), []), binary)
        tensors = self._read_inputs(self._request.get("inputs"))
        if self._bytes:
            raise bad_body(f"The body has {len(self._bytes)} more bytes than its inputs' binary_data_size.")
        return InferRequest(request_id, tensors, params, wanted, binary)

    def _read_inputs(self, inputs: Any) -> Dict[str, Tensor]:
        if not isinstance(inputs, list):
            raise bad_body(f'The request must have "inputs", a list of tensors, not {_kind(inputs)}.')
        tensors: Dict[str, Tensor] = {}
        items: List[Any] = inputs
        for i, item in enumerate(items):
            name = _name_of(item, "Input", i)
            if name in tensors:
                raise bad_body(f"Input {shown(name)} is there twice.")
            tensors[name] = self._read_input(item, _refuse_for("Input", name))
        return tensors

    def _read_input(self, item: Dict[str, Any], refuse: Refuse) -> Tensor:
        datatype, shape, data = item.get("datatype"), item.get("shape"), item.get("data")
        if datatype not in DATATYPES:
            raise refuse(f"{shown(datatype)} is not a datatype; there are {', '.join(DATATYPES)}")
        if not isinstance(shape, list):
            raise refuse(f"the shape must be a list of whole numbers, not {_kind(shape)}")
        problem = problem_of_shape(shape) or _problem_of_empty_shape(shape)
        if problem is not None:
            raise refuse(problem)
        parameters = parameters_of(item, refuse)
        if "shared_memory_region" in parameters:
            raise refuse("shared memory is not supported; send the data")
        size = parameters.get("binary_data_size")
        if data is None:
            return tensor_of_bytes(datatype, shape, self._take(size, refuse), refuse)
        if size is not None:
            raise refuse("it has both data and binary_data_size")
        return tensor_of_list(datatype, shape, data, refuse)

    def _take(self, size: Any, refuse: Refuse) -> memoryview:
        if size is None:
            raise refuse("it has no data")
        if type(size) is not int or size < 0:
            raise refuse(f"binary_data_size must be a whole number of bytes, not {shown(size)}")
        left = self._bytes
        if left is None:
            raise refuse(f"binary_data_size needs the header {_HEADER} with the length of the JSON")
        if size > len(left):
            raise refuse(f"binary_data_size is {size}, but only {len(left)} bytes of the body are left")
        self._bytes = left[size:]
        return left[:size]


def _problem_of_empty_shape(shape: List[int]) -> Optional[str]:
    if math.prod(shape) > 0 or math.prod([size for size in shape if size > 0]) <= _MAX_EMPTY_SIZE:
        return None
    limit = f"the product of its other sizes may be {_MAX_EMPTY_SIZE} at most"
    return f"the shape {shown(shape)} has no elements; {limit}"


def _name_of(item: Any, kind: str, i: int) -> str:
    if not isinstance(item, dict):
        raise bad_body(f'{kind} {i} must be an object with a "name", not {_kind(item)}.')
    name: Any = item.get("name")
    if not isinstance(name, str) or name == "":
        raise bad_body(f'{kind} {i} must have a "name" that is text, not {shown(name)}.')
    return name


def _read_wanted(outputs: Any, binary: bool) -> Optional[Dict[str, bool]]:
    if not isinstance(outputs, list):
        raise bad_body(f'The request\'s "outputs" must be a list, not {_kind(outputs)}.')
    named: Dict[str, bool] = {}
    items: List[Any] = outputs
    for i, item in enumerate(items):
        name = _name_of(item, "Output", i)
        if name in named:
            raise bad_body(f"Output {shown(name)} is there twice.")
        named[name] = _is_binary(item, binary, _refuse_for("Output", name))
    return named or None


def _is_binary(item: Dict[str, Any], by_default: bool, refuse: Refuse) -> bool:
    """The switch of one output counts before that of the request."""
    parameters = parameters_of(item, refuse)
    if "classification" in parameters:
        raise refuse("classification is not supported; the output has all values")
    if "shared_memory_region" in parameters:
        raise refuse("shared memory is not supported")
    own = parameters.get("binary_data", by_default)
    if not isinstance(own, bool):
        raise refuse(f"binary_data must be true or false, not {shown(own)}")
    return own


def _read_parameters(request: Dict[str, Any]) -> Tuple[Dict[str, Parameter], bool]:
    params = dict(parameters_of(request, lambda text: bad_body(f"The request's {text}.")))
    binary = params.pop("binary_data_output", False)
    if not isinstance(binary, bool):
        raise bad_body(f"The parameter binary_data_output must be true or false, not {shown(binary)}.")
    for name in ("priority", "timeout"):
        value = params.pop(name, 0)
        if type(value) is not int or value < 0:
            raise bad_body(f"The parameter {name} must be a whole number from 0, not {shown(value)}.")
    sequence = params.get("sequence_id", 0)
    if sequence not in (0, ""):
        cure = "Send the state with it, or keep it in the app under a parameter of another name."
        what = f"The parameter sequence_id is {shown(sequence)}, but this server has no sequences"
        raise bad_body(f"{what}: each call stands alone. {cure}")
    for name in params:
        if name.startswith("triton_"):
            raise bad_body(f'The parameter {shown(name)} is reserved: no name may begin with "triton_".')
    return checked_parameters(params), binary


def checked_parameters(params: Dict[str, Any]) -> Dict[str, Parameter]:
    """Parameters for the app. @raises ServeError SERVE_BAD_BODY for one that is a list, an object or null"""
    for name, value in params.items():
        if not isinstance(value, (str, int, float, bool)):
            wanted = "text, a number, true or false"
            raise bad_body(f"The parameter {shown(name)} must be {wanted}, not {_kind(value)}.")
    return params


def parameters_of(item: Mapping[str, Any], refuse: Refuse) -> Dict[str, Any]:
    """Clients write null for none."""
    parameters: Any = _or_else(item.get("parameters"), {})
    if not isinstance(parameters, dict):
        raise refuse(f"parameters must be an object, not {_kind(parameters)}")
    return parameters


def _or_else(value: Any, other: Any) -> Any:
    return other if value is None else value


_KINDS: Dict[Any, str] = {list: "a list", dict: "an object", str: "text"}


def _kind(value: object) -> str:
    """The kind of a value of JSON."""
    return _KINDS.get(type(value)) or ("undefined" if value is None else shown(value))


def _refuse_for(kind: str, name: str) -> Refuse:
    return lambda text: bad_body(f"{kind} {shown(name)}: {text}.")


# The size of a dimension that may have any.
FREE = -1

# The cure for an input that does not say its shape.
_SEND_THE_SHAPE = "send the shape, as the Open Inference Protocol V2 does (/v2)"


def check_inputs(inputs: Mapping[str, Tensor], signature: Signature) -> None:
    """@raises ServeError SERVE_BAD_BODY that names the tensor, what the app wants and what it got"""
    for spec in signature.inputs:
        tensor = inputs.get(spec.name)
        if tensor is None:
            raise bad_body(f"Input {shown(spec.name)} is missing; the model wants {_text(spec.datatype, spec.shape)}.")
        if not _fits(tensor, spec):
            wanted, got = _text(spec.datatype, spec.shape), _text(tensor.datatype, tensor.shape)
            raise bad_body(f"Input {shown(spec.name)}: the model wants {wanted}, but got {got}.")
    names = [spec.name for spec in signature.inputs]
    for name in inputs:
        if name not in names:
            known = ", ".join(shown(other) for other in names)
            raise bad_body(f"The model has no input {shown(name)}; its inputs are {known}.")


def _fits(tensor: Tensor, spec: TensorSpec) -> bool:
    if tensor.datatype != spec.datatype:
        return False
    if len(spec.shape) == 0:
        return math.prod(tensor.shape) == 1  # a scalar may have any dimensions around it
    if len(tensor.shape) != len(spec.shape):
        return False
    return all(size in (FREE, given) for size, given in zip(spec.shape, tensor.shape))


def _text(datatype: str, shape: object) -> str:
    return f"{datatype} of the shape {shown(shape)}"


def raw_input(body: bytes, signature: Optional[Signature]) -> Dict[str, Tensor]:
    """Reads a whole body as the one input of a model (the header Inference-Header-Content-Length: 0). A BYTES input is
    one element, without its length. @raises ServeError SERVE_BAD_BODY"""
    if signature is None or len(signature.inputs) != 1:
        problem = "this app has no signature" if signature is None else f"this model has {len(signature.inputs)}"
        what = "Inference-Header-Content-Length is 0, so the body must be the bytes of the one input of a model"
        raise bad_body(f"{what}, but {problem}.")
    spec = signature.inputs[0]
    is_text, wanted = spec.datatype == "BYTES", _text(spec.datatype, spec.shape)

    def refuse(text: str) -> ServeError:
        return bad_body(f"Input {shown(spec.name)}: {text}.")

    if not is_text and spec.shape[1:].count(FREE) > 1:
        raise refuse(f"{len(body)} bytes may have several shapes of {wanted}; {_SEND_THE_SHAPE}")
    shape = _raw_shape(spec, len(body))
    if shape is None:
        raise refuse(f"{len(body)} bytes are not {wanted}")
    data = struct.pack("<I", len(body)) + body if is_text else body
    return {spec.name: tensor_of_bytes(spec.datatype, shape, memoryview(data), refuse)}


def _raw_shape(spec: TensorSpec, size: int) -> Optional[List[int]]:
    """The shape with its free dimensions set: the last by the number of bytes, the first to 1; one element has a size of
    1 in all. None if none fits."""
    shape = [1 if one == FREE else one for one in spec.shape]
    free = [at for at, one in enumerate(spec.shape) if one == FREE]
    count, rest = (1, 0) if spec.datatype == "BYTES" else divmod(size, size_of(spec.datatype))
    known = math.prod(shape)
    if rest or known == 0 or count % known:
        return None
    if free:
        shape[free[-1]] = count // known
    return shape if free or count == known else None
