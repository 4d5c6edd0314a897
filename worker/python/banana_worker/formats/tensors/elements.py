"""Turns the elements of each datatype from values of JSON, or of an app's lists, into the data of a tensor, and into
JSON."""

from __future__ import annotations

import json
import math
import struct
from array import array
from itertools import chain
from typing import Any, Callable, List, Sequence, Union

from banana_worker.values.tensor import FORMATS, Tensor, element_count, plural, shown

# Makes the error of an input or an output; the text goes on after its name, such as `Input "x"`.
Refuse = Callable[[str], Exception]

_BITS = {"B": 8, "H": 16, "I": 32, "Q": 64}

_INFINITY = float("inf")


def tensor_of_list(datatype: str, shape: Sequence[int], data: object, refuse: Refuse) -> Tensor:
    """A tensor of a checked shape, from a list that is flat or nested like it. Nothing is allocated for a shape that
    the list does not have. @raises the error of `refuse`"""
    if not isinstance(data, (list, tuple)):
        raise refuse(f"data must be a list, not {shown(data)}")
    values = _flat(data, shape, refuse)
    elements = _strings(values, refuse) if datatype == "BYTES" else _numbers(datatype, values, refuse)
    return Tensor(datatype, shape, elements)


def _flat(data: Sequence[Any], shape: Sequence[int], refuse: Refuse) -> Sequence[Any]:
    count = element_count(shape)
    if len(shape) < 2 or not data or not isinstance(data[0], (list, tuple)):
        if len(data) != count:
            raise refuse(f"the shape {shown(shape)} has {count} {plural(count)}, but data has {len(data)}")
        return data
    rows: Sequence[Any] = [data]
    for level, size in enumerate(shape):
        for row in rows:
            if not isinstance(row, (list, tuple)):
                nested = f"data is not nested like the shape {shown(shape)}"
                raise refuse(f"{nested}: it has {shown(row)} beside lists")
            if len(row) != size:
                where = "data" if level == 0 else f"a list in dimension {level} of data"
                raise refuse(f"{where} has {len(row)} items; the shape {shown(shape)} wants {size}")
        rows = list(chain.from_iterable(rows))
    return rows


def _strings(values: Sequence[Any], refuse: Refuse) -> List[bytes]:
    return [_string(value, at, refuse) for at, value in enumerate(values)]


def _string(value: Any, at: int, refuse: Refuse) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            pass
    elif isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise _wrong("BYTES", value, at, refuse)


def _numbers(datatype: str, values: Sequence[Any], refuse: Refuse) -> Any:
    """`array` converts at native speed, but takes True for 1, and refuses without a place."""
    types = set(map(type, values))
    code = FORMATS[datatype]
    try:
        if datatype == "BOOL" and types <= {bool}:
            return memoryview(bytearray(values)).cast("?")
        if code in "fd" and types <= {int, float}:
            return array(code, values)
        if datatype in ("FP16", "BF16") and types <= {int, float}:
            return array("H", map(fp16_bits if datatype == "FP16" else bf16_bits, map(float, values)))
        if code not in "fd" and datatype not in ("BOOL", "FP16", "BF16"):
            if types <= {int}:
                return array(code, values)
            if types <= {int, float}:
                return array(code, map(_whole, values))
    except (OverflowError, ValueError):
        pass
    at = next(at for at, value in enumerate(values) if not _has(datatype, value))
    raise _wrong(datatype, values[at], at, refuse)


def _whole(value: Union[int, float]) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError
    # From 2^53 on, a float may stand for another number than was written.
    if isinstance(value, float) and abs(value) >= 2**53:
        raise ValueError
    return int(value)


def _has(datatype: str, value: Any) -> bool:
    """Whether the datatype has the value."""
    if datatype == "BOOL":
        return type(value) is bool
    if type(value) not in (int, float):
        return False
    try:
        if datatype in ("FP16", "BF16", "FP32", "FP64"):
            float(value)
            return True
        array(FORMATS[datatype], [_whole(value)])
        return True
    except (OverflowError, ValueError):
        return False


def _wrong(datatype: str, value: Any, at: int, refuse: Refuse) -> Exception:
    return refuse(f"element {at} is {shown(value)}; {datatype} has {_values(datatype)}")


def _values(datatype: str) -> str:
    if datatype in ("FP16", "BF16", "FP32", "FP64"):
        return "numbers"
    if datatype in ("BOOL", "BYTES"):
        return "true or false" if datatype == "BOOL" else "texts"
    bits = _BITS[FORMATS[datatype].upper()]
    if datatype.startswith("U"):
        return f"whole numbers from 0 to {2**bits - 1}"
    return f"whole numbers from {-(2 ** (bits - 1))} to {2 ** (bits - 1) - 1}"


def fp16_bits(value: float) -> int:
    """Rounds to the nearest, ties to even; a number beyond the largest becomes an infinity."""
    if math.isfinite(value) and abs(value) >= 65520:
        value = math.copysign(_INFINITY, value)
    return int(struct.unpack("<H", struct.pack("<e", value))[0])


def bf16_bits(value: float) -> int:
    """Rounds once, to the nearest, ties to even; a number beyond the largest becomes an infinity."""
    if math.isnan(value):
        return 0x7FC0
    sign = 0x8000 if math.copysign(1, value) < 0 else 0
    size = abs(value)
    if size in (0, _INFINITY):
        return sign | (0x7F80 if size else 0)
    exponent = max(math.frexp(size)[1] - 1, -126)
    steps = round(math.ldexp(size, 7 - exponent))
    return sign | min(steps + ((exponent + 126) << 7), 0x7F80)


def elements_text(tensor: Tensor, refuse: Refuse) -> str:
    """The elements as a list of JSON: integers with all their digits, NaN and infinities as Triton's words, which
    JSON does not have. @raises the error of `refuse` if BYTES are not UTF-8"""
    data: Any = tensor.data
    if tensor.datatype == "BYTES":
        data = [_text(item, at, refuse) for at, item in enumerate(data)]
    elif tensor.datatype == "FP16":
        data = memoryview(data.tobytes())
        data = struct.unpack(f"<{len(tensor.data)}e", data)
    elif tensor.datatype == "BF16":
        bits = struct.pack(f"<{2 * len(data)}H", *chain.from_iterable((0, item) for item in data))
        data = struct.unpack(f"<{len(tensor.data)}f", bits)
    elif isinstance(data, memoryview):
        data = data.tolist()
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _text(item: Union[bytes, str], at: int, refuse: Refuse) -> str:
    try:
        text = item if isinstance(item, str) else bytes(item).decode()
        text.encode()
        return text
    except UnicodeError:
        cure = 'ask for it with the parameter "binary_data": true'
        raise refuse(f"element {at} is not text in UTF-8, which is all that JSON can carry; {cure}") from None


def has_infinity(data: object, depth: int) -> bool:
    """Whether a list, or lists nested in it down to a depth, hold an infinity. Numbers beside lists are refused later,
    whatever they are."""
    if not isinstance(data, list):
        return False
    items: List[Any] = data
    if items and isinstance(items[0], list):
        return depth > 0 and any(has_infinity(item, depth - 1) for item in items)
    return _INFINITY in items or -_INFINITY in items
