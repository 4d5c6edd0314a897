"""Tensors of the Open Inference Protocol, as apps receive and return them where numpy has none."""

from __future__ import annotations

import json
import math
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from banana_worker.failures.sentences import kind_of

# Formats of the elements in memory (the module struct), by datatype; BYTES has a list instead. FP16 and BF16 are their
# bits.
FORMATS: Dict[str, str] = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT16": "H",
    "UINT32": "I",
    "UINT64": "Q",
    "INT8": "b",
    "INT16": "h",
    "INT32": "i",
    "INT64": "q",
    "FP16": "H",
    "BF16": "H",
    "FP32": "f",
    "FP64": "d",
}

DATATYPES = (*FORMATS, "BYTES")

# The limit of numpy before version 2.
MAX_DIMENSIONS = 32

# The largest number of elements that JavaScript counts exactly.
_MAX_COUNT = 2**53 - 1

_KINDS = {"?": "?", "B": "u", "H": "u", "I": "u", "L": "u", "Q": "u", "f": "f", "d": "f"}
_KINDS.update({"b": "i", "h": "i", "i": "i", "l": "i", "q": "i"})


class Tensor:
    """Elements in row-major order. `data` is a memoryview of them (FP16 and BF16: of their bits), for BYTES a list of
    bytes, or of texts, which stand for their UTF-8."""

    def __init__(self, datatype: str, shape: Sequence[int], data: Any) -> None:
        """`data`: an `array.array`, a memoryview or another buffer of such elements, or bytes in their order; for
        BYTES a list. It is not copied. @raises TypeError if the three do not match"""
        problem = problem_of_shape(shape)
        if datatype not in DATATYPES:
            problem = f"{shown(datatype)} is not a datatype; there are {', '.join(DATATYPES)}"
        if problem:
            raise _wrong(problem)
        self.datatype = datatype
        self.shape: Tuple[int, ...] = tuple(shape)
        self.data: Any = _strings(data) if datatype == "BYTES" else _elements(datatype, data)
        count = math.prod(shape)
        if len(self.data) != count:
            raise _wrong(f"the shape {shown(shape)} has {count} {plural(count)}, but data has {len(self.data)}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        return (self.datatype, self.shape, self.data) == (other.datatype, other.shape, other.data)

    def __repr__(self) -> str:
        return f"Tensor({self.datatype!r}, {list(self.shape)!r}, ...)"


# The name in tracebacks, and for pickle.
Tensor.__module__ = "banana_serve"


class TensorSpec(NamedTuple):
    """A tensor of a signature; a size of -1 is free."""

    name: str
    datatype: str
    shape: Tuple[int, ...]


class Signature(NamedTuple):
    inputs: Tuple[TensorSpec, ...]
    outputs: Tuple[TensorSpec, ...]


def _wrong(problem: str) -> TypeError:
    return TypeError(f"Tensor(datatype, shape, data): {problem}")


def _strings(data: Any) -> List[Union[bytes, str]]:
    if not isinstance(data, list):
        raise _wrong(f"data of BYTES must be a list, not {kind_of(data)}")
    items: List[Any] = data
    for at, item in enumerate(items):
        if not isinstance(item, (bytes, bytearray, memoryview, str)):
            raise _wrong(f"element {at} of BYTES must be bytes or text, not {kind_of(item)}")
    return items


def _elements(datatype: str, data: Any) -> memoryview:
    wanted = FORMATS[datatype]
    try:
        view = memoryview(data)
    except TypeError:
        raise _wrong(f"data of {datatype} must be an array or bytes, not {kind_of(data)}") from None
    is_plain = isinstance(data, (bytes, bytearray)) and datatype != "UINT8"
    size = size_of(datatype)
    if not is_plain and (_KINDS.get(view.format.lstrip("@<="), ""), view.itemsize) != (_KINDS[wanted], size):
        raise _wrong(f"data of {datatype} must have elements of the format {wanted!r}, not {view.format!r}")
    if view.nbytes % size:
        raise _wrong(f"{view.nbytes} bytes are no whole elements of {datatype}")
    return elements_of(datatype, view)


def size_of(datatype: str) -> int:
    """Bytes of an element; not for BYTES."""
    return struct.calcsize("=" + FORMATS[datatype])


def elements_of(datatype: str, data: Any) -> memoryview:
    """The elements whose bytes lie in a buffer; not for BYTES."""
    view: Any = memoryview(data)
    return view.cast("B").cast(FORMATS[datatype])


def problem_of_shape(shape: object) -> Optional[str]:
    """Describes a shape that no tensor can have; None for any other."""
    if not isinstance(shape, (list, tuple)):
        return f"the shape must be a list of whole numbers, not {kind_of(shape)}"
    if len(shape) > MAX_DIMENSIONS:
        return f"the shape has {len(shape)} dimensions; {MAX_DIMENSIONS} are allowed"
    for size in shape:
        if type(size) is not int or size < 0:
            return f"the shape must have whole numbers from 0, not {shown(size)}"
    if math.prod([size for size in shape if size > 0]) > _MAX_COUNT:
        return f"the shape {shown(shape)} has more elements than can be counted"
    return None


def plural(count: int) -> str:
    return "element" if count == 1 else "elements"


_MAX_SHOWN_CHARS = 60


def shown(value: object) -> str:
    """A wrong value in an error text, cut short."""
    if isinstance(value, (list, tuple)) and len(value) <= MAX_DIMENSIONS:
        return f"[{', '.join(_shown_item(item) for item in value)}]"
    return _shown_item(value)


def _shown_item(value: object) -> str:
    if isinstance(value, str):
        text = json.dumps(value[:_MAX_SHOWN_CHARS], ensure_ascii=False)
        return text.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**_MAX_SHOWN_CHARS:
        return "a number of many digits"
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        return "a list"
    return "an object" if isinstance(value, dict) else kind_of(value)
