"""Inputs of an app that has a signature: checked against it, or read without JSON, because it says all."""

from __future__ import annotations

import struct
from typing import Dict, List, Mapping, Optional

from banana_worker.formats.tensors.raw_data import tensor_of_bytes
from banana_worker.protocol.errors import ServeError
from banana_worker.values.tensor import Signature, Tensor, TensorSpec, element_count, shown, size_of

# The size of a dimension that may have any.
FREE = -1

# The cure for an input that does not say its shape.
_SEND_THE_SHAPE = "send the shape, as the Open Inference Protocol V2 does (/v2)"


def check_inputs(inputs: Mapping[str, Tensor], signature: Signature) -> None:
    """@raises ServeError SERVE_BAD_BODY that names the tensor, what the app wants and what it got"""
    for spec in signature.inputs:
        tensor = inputs.get(spec.name)
        if tensor is None:
            raise _bad_body(f"Input {shown(spec.name)} is missing; the model wants {_text(spec.datatype, spec.shape)}.")
        if not _fits(tensor, spec):
            wanted, got = _text(spec.datatype, spec.shape), _text(tensor.datatype, tensor.shape)
            raise _bad_body(f"Input {shown(spec.name)}: the model wants {wanted}, but got {got}.")
    names = [spec.name for spec in signature.inputs]
    for name in inputs:
        if name not in names:
            known = ", ".join(shown(other) for other in names)
            raise _bad_body(f"The model has no input {shown(name)}; its inputs are {known}.")


def _fits(tensor: Tensor, spec: TensorSpec) -> bool:
    if tensor.datatype != spec.datatype:
        return False
    if len(spec.shape) == 0:
        return element_count(tensor.shape) == 1  # a scalar may have any dimensions around it
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
        raise _bad_body(f"{what}, but {problem}.")
    spec = signature.inputs[0]
    is_text, wanted = spec.datatype == "BYTES", _text(spec.datatype, spec.shape)

    def refuse(text: str) -> ServeError:
        return _bad_body(f"Input {shown(spec.name)}: {text}.")

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
    known = element_count(shape)
    if rest or known == 0 or count % known:
        return None
    if free:
        shape[free[-1]] = count // known
    return shape if free or count == known else None


def _bad_body(message: str) -> ServeError:
    return ServeError("SERVE_BAD_BODY", message)
