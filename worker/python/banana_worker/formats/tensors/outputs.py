"""Turns what an app returned into tensors by name."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from banana_worker.failures.sentences import kind_of
from banana_worker.formats.tensors.arrays import array_of, tensor_of_array
from banana_worker.formats.tensors.elements import Refuse, tensor_of_list
from banana_worker.protocol.errors import output_invalid
from banana_worker.values.conversions import as_dict
from banana_worker.values.not_data import not_data
from banana_worker.values.tensor import (
    DATATYPES,
    MAX_DIMENSIONS,
    Signature,
    Tensor,
    TensorSpec,
    problem_of_shape,
    shown,
)


def outputs_of(value: Any, signature: Optional[Signature]) -> Dict[str, Tensor]:
    """A dict has an output for each key, an object of fields for each field; any other value is one output, without a name:
    that of a signature of one, else `output`. @raises ServeError SERVE_OUTPUT_INVALID that names the output"""
    specs: Sequence[TensorSpec] = signature.outputs if signature is not None else ()
    value = value if isinstance(value, Mapping) else as_dict(value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, Mapping) and not _is_tensor(value):
        return _named(value, {spec.name: spec for spec in specs})  # pyright: ignore[reportUnknownVariableType]
    if value is None:
        raise output_invalid('The output is None; return tensors by name, such as {"scores": numpy.array([0.5])}.')
    spec = specs[0] if len(specs) == 1 else None
    name = "output" if spec is None else spec.name
    return {name: _tensor_of(value, spec, _refuse_for(name))}


def _named(values: Mapping[Any, Any], specs: Mapping[str, TensorSpec]) -> Dict[str, Tensor]:
    if not values:
        raise output_invalid('The output is an empty dict; return tensors by name, such as {"scores": [0.5]}.')
    tensors: Dict[str, Tensor] = {}
    for key, value in values.items():
        if not isinstance(key, str):
            raise output_invalid(f"The name of an output must be text, not {kind_of(key)}.")
        tensors[key] = _tensor_of(value, specs.get(key), _refuse_for(key))
    return tensors


def _refuse_for(name: str) -> Refuse:
    return lambda text: output_invalid(f"Output {shown(name)}: {text}.")


def _tensor_of(value: Any, spec: Optional[TensorSpec], refuse: Refuse) -> Tensor:
    if isinstance(value, Tensor):
        return value
    array = array_of(value)
    if array is not None:
        tensor = tensor_of_array(array)
        if isinstance(tensor, str):
            raise refuse(tensor)
        return tensor
    if isinstance(value, (list, tuple)):
        return _tensor_of_lists(value, spec, refuse)
    if isinstance(value, Mapping):
        return _tensor_of_fields(value, refuse)
    shape = [] if spec is not None and not spec.shape else [1]
    return tensor_of_list(spec.datatype if spec is not None else _datatype_of(value, refuse), shape, [value], refuse)


def _is_tensor(value: Mapping[Any, Any]) -> bool:
    return isinstance(value.get("datatype"), str) and "shape" in value and "data" in value


def _tensor_of_fields(value: Mapping[Any, Any], refuse: Refuse) -> Tensor:
    """A dict with the three fields of a tensor."""
    datatype, shape, data = (value.get(name) for name in ("datatype", "shape", "data"))
    if datatype not in DATATYPES or shape is None or data is None:
        raise refuse("a dict is not a tensor; return an array, a Tensor, or lists of numbers, booleans or texts")
    problem = problem_of_shape(shape)
    if problem is not None:
        raise refuse(problem)
    if isinstance(data, (list, tuple)):
        return tensor_of_list(str(datatype), shape, data, refuse)
    try:
        return Tensor(str(datatype), shape, data)
    except TypeError as error:
        raise refuse(str(error)) from error


def _tensor_of_lists(value: Any, spec: Optional[TensorSpec], refuse: Refuse) -> Tensor:
    shape: List[int] = []
    item = value
    while isinstance(item, (list, tuple)):
        if len(shape) == MAX_DIMENSIONS:
            raise refuse(f"it is nested deeper than {MAX_DIMENSIONS} lists")
        shape.append(len(item))
        item = item[0] if item else 0.0
    array = array_of(item)
    if array is not None:
        return _tensor_of_arrays(value, refuse)
    datatype = spec.datatype if spec is not None else _datatype_of(item, refuse)
    return tensor_of_list(datatype, shape, value, refuse)


def _tensor_of_arrays(value: Any, refuse: Refuse) -> Tensor:
    """Lists of arrays, or of numbers of numpy."""
    try:
        tensor = tensor_of_array(_stacked(value))
    except (ValueError, TypeError) as cause:
        raise refuse("the arrays of a list must have the same shape") from cause
    if isinstance(tensor, str):
        raise refuse(tensor)
    return tensor


def _stacked(value: Any) -> Any:
    """@raises ValueError, TypeError if the parts have unequal shapes, or are no arrays"""
    import numpy  # pyright: ignore[reportMissingImports]

    if isinstance(value, (list, tuple)):
        items: Sequence[Any] = value
        if all(isinstance(item, numpy.generic) for item in items):
            return numpy.array(items)  # an array for each number would take many times as long
        return numpy.stack([_stacked(item) for item in items])
    array = array_of(value)
    if array is None:
        raise TypeError
    return array


def _datatype_of(item: Any, refuse: Refuse) -> str:
    """The datatype of a list without a signature, by its first element."""
    if isinstance(item, bool):
        return "BOOL"
    if isinstance(item, (int, float)):
        return "FP64"
    if isinstance(item, (str, bytes, bytearray)):
        return "BYTES"
    raise refuse("it is None" if item is None else f"it {not_data(item)}")
