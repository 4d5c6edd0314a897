"""Reads and checks the `signature` of an app: the names, datatypes and shapes of its inputs and outputs."""

from __future__ import annotations

from types import ModuleType
from typing import Any, List, Optional, Tuple

from banana_worker.failures.sentences import kind_of
from banana_worker.values.tensor import DATATYPES, MAX_DIMENSIONS, Signature, TensorSpec, shown


def signature_of(module: ModuleType) -> Optional[Signature]:
    """None for an app without one: a name `signature` that is no dict with `inputs` or `outputs` is the app's own, such
    as the function of `inspect`. @raises TypeError that names the tensor if it is no signature"""
    given: Any = getattr(module, "signature", None)
    if not isinstance(given, dict) or not ("inputs" in given or "outputs" in given):
        return None
    return Signature(_specs_of(given.get("inputs"), "inputs"), _specs_of(given.get("outputs"), "outputs"))


def _specs_of(given: Any, key: str) -> Tuple[TensorSpec, ...]:
    if not isinstance(given, (list, tuple)):
        raise TypeError(f'`signature`: "{key}" must be a list, not {kind_of(given)}')
    specs: List[TensorSpec] = []
    for i, item in enumerate(given):
        spec = _spec_of(item, f'"{key}"[{i}]')
        if any(other.name == spec.name for other in specs):
            raise TypeError(f'`signature`: "{key}" has {shown(spec.name)} twice')
        specs.append(spec)
    return tuple(specs)


def _spec_of(given: Any, place: str) -> TensorSpec:
    if not isinstance(given, dict):
        raise TypeError(f"`signature`: {place} must be a dict with name, datatype and shape, not {kind_of(given)}")
    name, datatype, shape = (given.get(field) for field in ("name", "datatype", "shape"))
    if not isinstance(name, str) or not name:
        raise TypeError(f"`signature`: the name of {place} must be text, not {shown(name)}")
    if datatype not in DATATYPES:
        raise TypeError(f"`signature`: the datatype of {place} is {shown(datatype)}; there are {', '.join(DATATYPES)}")
    if not isinstance(shape, (list, tuple)) or len(shape) > MAX_DIMENSIONS or not all(map(_is_size, shape)):
        text = f"the shape of {place} must be a list of sizes, with -1 for a free one, not {shown(shape)}"
        raise TypeError(f"`signature`: {text}")
    return TensorSpec(name, str(datatype), tuple(shape))


def _is_size(size: object) -> bool:
    return type(size) is int and size >= -1
