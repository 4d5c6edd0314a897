"""Tensors as arrays of numpy, if it is installed. BF16, which it lacks, is a `Tensor` for apps."""

from __future__ import annotations

import math
import sys
from typing import Any, Optional, Union

from banana_worker.values.array_values import on_cpu
from banana_worker.values.tensor import FORMATS, Tensor, elements_of


def for_app(tensor: Tensor) -> Any:
    """The tensor as an app gets it: an array that it may write to; of bytes, for BYTES. Without numpy, and for BF16,
    the tensor itself."""
    numpy = _numpy()
    if numpy is None or tensor.datatype == "BF16":
        return tensor
    if tensor.datatype == "BYTES":
        array = numpy.empty(len(tensor.data), dtype=object)
        array[:] = tensor.data
    elif len(tensor.data) == 0:
        array = numpy.empty(0, dtype=_dtype(tensor.datatype))
    else:
        array = numpy.frombuffer(tensor.data, dtype=_dtype(tensor.datatype))
    return array.reshape(tensor.shape)


def _dtype(datatype: str) -> str:
    return "e" if datatype == "FP16" else FORMATS[datatype]


def _numpy() -> Optional[Any]:
    """The first call imports it: an app that gets tensors nearly always has done so."""
    try:
        import numpy  # pyright: ignore[reportMissingImports]

        return numpy
    except ImportError:
        return None


def array_of(value: object) -> Optional[Any]:
    """A value as an array of numpy, if it is one, a number of numpy, or a tensor of a library that gives one. None
    for any other."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return numpy.asarray(value)
    if not hasattr(type(value), "__array__"):
        return None
    return numpy.asarray(on_cpu(value) if hasattr(value, "detach") else value)


def tensor_of_array(array: Any) -> Union[Tensor, str]:
    """A tensor of the array, or a text that says why there is none."""
    numpy = sys.modules["numpy"]
    kind, name = array.dtype.kind, array.dtype.name
    shape = [int(size) for size in array.shape]
    if kind in "SUO":
        items = [item.item() if isinstance(item, numpy.generic) else item for item in array.ravel().tolist()]
        try:
            return Tensor("BYTES", shape, items)
        except TypeError as error:
            return str(error)
    # The names are those of numpy in capitals, but for those of floats.
    datatype = "BF16" if name == "bfloat16" else name.upper().replace("FLOAT", "FP")
    if datatype not in FORMATS:
        return f"an array of {name} is not a tensor; convert it, such as with astype('float32')"
    if math.prod(shape) == 0:
        return Tensor(datatype, shape, b"" if datatype != "UINT8" else memoryview(b""))
    whole = numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return Tensor(datatype, shape, elements_of(datatype, whole.reshape(-1).view("uint8")))
