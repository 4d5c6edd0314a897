"""Turns arrays and tensors into nested lists. No library is imported: if the app uses one, it has loaded it."""

from __future__ import annotations

import sys
from typing import Any

from banana_worker.values.not_data import NotData, not_data


def numpy_list(value: Any) -> object:
    """Items of an array, or of a numpy scalar, as Python's own numbers and text; records are dicts, times ISO 8601."""
    numpy = sys.modules["numpy"]
    array: Any = numpy.asarray(value)
    kind = array.dtype.kind
    if array.dtype.names is not None:
        return _records(numpy, array)
    if kind == "M":
        return _iso_times(numpy, array)
    if kind == "m":
        return (array / numpy.timedelta64(1, "s")).tolist()
    if kind == "c":
        raise NotData("is an array of complex numbers; return its real and its imag")
    if kind == "f" and array.dtype.itemsize > 8:
        return array.astype("float64").tolist()  # `tolist` would not convert a long double
    if kind == "V" and array.dtype.type is not numpy.void:
        return array.astype("float32").tolist()  # the small floats of ml_dtypes
    # A masked array has a `tolist` of its own, which `asarray` would lose.
    return value.tolist()


def _records(numpy: Any, array: Any) -> object:
    """A list of dicts in the shape of the array."""
    if array.ndim > 0:
        return [_records(numpy, item) for item in array]
    return {name: numpy_list(numpy.asarray(array[name])) for name in array.dtype.names}


def _iso_times(numpy: Any, array: Any) -> object:
    """NaT (not a time) becomes null."""
    texts = numpy.datetime_as_string(array).astype(object)
    if array.ndim == 0:
        return None if numpy.isnat(array) else str(texts)
    texts[numpy.isnat(array)] = None
    return texts.tolist()


def torch_list(tensor: Any) -> object:
    """Items of a tensor."""
    whole = on_cpu(tensor)
    if "complex" in str(whole.dtype):
        raise NotData("is a tensor of complex numbers; return its real and its imag")
    return whole.tolist()


def on_cpu(tensor: Any) -> Any:
    """A tensor of torch on any device, with a gradient or without, as one that numpy can read."""
    whole = tensor.detach()
    if str(getattr(whole, "layout", "torch.strided")) != "torch.strided":
        whole = whole.to_dense()
    if getattr(whole, "is_quantized", False) is True:
        whole = whole.dequantize()
    whole = whole.cpu()
    name = str(whole.dtype)
    return whole.float() if "bfloat16" in name or "float8" in name else whole


def array_list(value: Any) -> object:
    """Any other array that numpy can read, such as a tensor of jax or TensorFlow. @raises NotData"""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        if hasattr(value, "tolist"):
            return value.tolist()
        raise not_data(value)
    array = numpy.asarray(value)
    if array.dtype == object and array.ndim == 0:
        raise not_data(value)  # numpy has wrapped a value that it cannot read
    return numpy_list(array)
