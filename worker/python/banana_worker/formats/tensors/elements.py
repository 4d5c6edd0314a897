"""Turns the elements of each datatype from values of JSON, or of an app's lists, into the data of a tensor, and into
JSON; or from and into the bytes of the binary tensor data extension, which are little-endian and row-major, as they lie in the
memory of the computers that run us."""

from __future__ import annotations

import json
import math
import struct
from array import array
from itertools import chain
from typing import Any, Callable, List, Sequence, Union

from banana_worker.values.tensor import FORMATS, Tensor, elements_of, plural, shown, size_of

# Makes the error of an input or an output; the text goes on after its name, such as `Input "x"`.
Refuse = Callable[[str], Exception]

_INFINITY = float("inf")

# Raised by array and struct for a value that a format does not have.
_REFUSALS = (OverflowError, ValueError, struct.error)

# Formats of the module struct, which refuses what would be rounded to an infinity; it has none for BF16.
_FLOATS = {"FP16": "e", "FP32": "f", "FP64": "d"}

# The largest number of each, for an error text.
_LARGEST = {"FP16": "65504", "BF16": "3.3895314e+38", "FP32": "3.4028235e+38", "FP64": "1.7976931348623157e+308"}


def tensor_of_list(datatype: str, shape: Sequence[int], data: object, refuse: Refuse) -> Tensor:
    """A tensor of a checked shape, from a list that is flat or nested like it. Nothing is allocated for a shape that
    the list does not have. @raises the error of `refuse`"""
    if not isinstance(data, (list, tuple)):
        raise refuse(f"data must be a list, not {shown(data)}")
    values = _flat(data, shape, refuse)
    elements = _strings(values, refuse) if datatype == "BYTES" else _numbers(datatype, values, refuse)
    return Tensor(datatype, shape, elements)


def _flat(data: Sequence[Any], shape: Sequence[int], refuse: Refuse) -> Sequence[Any]:
    count = math.prod(shape)
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
    try:
        return _packed(datatype, values)
    except _REFUSALS:
        at = next(at for at, value in enumerate(values) if not _has(datatype, value))
        raise _wrong(datatype, values[at], at, refuse) from None


def _packed(datatype: str, values: Sequence[Any]) -> Any:
    """Converts at native speed, which takes True for 1, and refuses without a place. @raises one of _REFUSALS for a
    value that the datatype does not have, such as a float that it would round to an infinity"""
    types = set(map(type, values))
    code = FORMATS[datatype]
    if datatype == "BOOL" and types <= {bool}:
        return memoryview(bytearray(values)).cast("?")
    if datatype == "BOOL" or not types <= {int, float}:
        raise ValueError
    if datatype == "BF16":
        return array(code, map(bf16_bits, map(float, values)))
    if datatype in _FLOATS:
        data = bytearray(len(values) * size_of(datatype))
        struct.pack_into(f"<{len(values)}{_FLOATS[datatype]}", data, 0, *values)
        return elements_of(datatype, data)
    return array(code, values if types <= {int} else map(_whole, values))


def _whole(value: Union[int, float]) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError
    # From 2^53 on, a float may stand for another number than was written.
    if isinstance(value, float) and abs(value) >= 2**53:
        raise ValueError
    return int(value)


def _has(datatype: str, value: Any) -> bool:
    """Whether the datatype has the value."""
    try:
        _packed(datatype, [value])
        return True
    except _REFUSALS:
        return False


def _wrong(datatype: str, value: Any, at: int, refuse: Refuse) -> Exception:
    return refuse(f"element {at} is {shown(value)}; {datatype} has {_values(datatype)}")


def _values(datatype: str) -> str:
    if datatype in _LARGEST:
        return f"numbers up to {_LARGEST[datatype]}"
    if datatype in ("BOOL", "BYTES"):
        return "true or false" if datatype == "BOOL" else "texts"
    bits = 8 * size_of(datatype)
    if datatype.startswith("U"):
        return f"whole numbers from 0 to {2**bits - 1}"
    return f"whole numbers from {-(2 ** (bits - 1))} to {2 ** (bits - 1) - 1}"


def bf16_bits(value: float) -> int:
    """Rounds once, to the nearest, ties to even. @raises OverflowError for a number that would become an infinity"""
    if math.isnan(value):
        return 0x7FC0
    sign = 0x8000 if math.copysign(1, value) < 0 else 0
    size = abs(value)
    if size in (0, _INFINITY):
        return sign | (0x7F80 if size else 0)
    exponent = max(math.frexp(size)[1] - 1, -126)
    bits = round(math.ldexp(size, 7 - exponent)) + ((exponent + 126) << 7)
    if bits >= 0x7F80:
        raise OverflowError
    return sign | bits


def elements_text(tensor: Tensor, refuse: Refuse) -> str:
    """The elements as a list of JSON: integers with all their digits, NaN and infinities as Triton's words, which
    JSON does not have. @raises the error of `refuse` if BYTES are not UTF-8"""
    data: Any = tensor.data
    if tensor.datatype == "BYTES":
        data = [_text(item, at, refuse) for at, item in enumerate(data)]
    elif tensor.datatype == "FP16":
        data = struct.unpack(f"<{len(data)}e", data.tobytes())
    elif tensor.datatype == "BF16":
        bits = struct.pack(f"<{2 * len(data)}H", *chain.from_iterable((0, item) for item in data))
        data = struct.unpack(f"<{len(data)}f", bits)
    else:
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


_LENGTH = struct.Struct("<I")


def tensor_of_bytes(datatype: str, shape: Sequence[int], data: memoryview, refuse: Refuse) -> Tensor:
    """A tensor of a checked shape from its bytes. They are copied once: a body cannot be written to, and elements need
    not be aligned in it. @raises the error of `refuse`"""
    count = math.prod(shape)
    if datatype == "BYTES":
        return Tensor(datatype, shape, _read_strings(data, shape, count, refuse))
    size = size_of(datatype)
    if len(data) != count * size:
        wanted = f"{datatype} of the shape {shown(shape)} takes {count * size} bytes"
        raise refuse(f"{wanted}, but binary_data_size is {len(data)}")
    own = bytearray(data)
    if datatype == "BOOL":
        _check_bools(own, refuse)
    return Tensor(datatype, shape, elements_of(datatype, own))


def _check_bools(data: bytearray, refuse: Refuse) -> None:
    if data.count(0) + data.count(1) < len(data):
        at = next(at for at, byte in enumerate(data) if byte > 1)
        raise refuse(f"element {at} is the byte {data[at]}; BOOL has 0 or 1")


def _read_strings(data: memoryview, shape: Sequence[int], count: int, refuse: Refuse) -> List[bytes]:
    if count * _LENGTH.size > len(data):
        raise _too_few(data, shape, count, refuse)
    items: List[bytes] = []
    at = 0
    while len(items) < count:
        start = at + _LENGTH.size
        if start <= len(data):
            at = start + _LENGTH.unpack_from(data, at)[0]
        if start > len(data) or at > len(data):
            raise _too_few(data, shape, len(items), refuse)
        items.append(bytes(data[start:at]))
    if at == len(data):
        return items
    raise refuse(f"its {len(data)} bytes have more than the {count} elements of the shape {shown(shape)}")


def _too_few(data: memoryview, shape: Sequence[int], at: int, refuse: Refuse) -> Exception:
    return refuse(f"its {len(data)} bytes end before the elements of the shape {shown(shape)} do (element {at})")


def bytes_of_tensor(tensor: Tensor, refuse: Refuse) -> Union[bytes, memoryview]:
    """@raises the error of `refuse` for text that UTF-8 cannot carry"""
    if tensor.datatype != "BYTES":
        view: memoryview = tensor.data
        return view.cast("B")
    parts: List[bytes] = []
    for at, item in enumerate(tensor.data):
        data = _bytes_of(item, at, refuse)
        parts += [_LENGTH.pack(len(data)), data]
    return b"".join(parts)


def _bytes_of(item: Any, at: int, refuse: Refuse) -> bytes:
    try:
        return item.encode() if isinstance(item, str) else bytes(item)
    except UnicodeEncodeError:
        raise refuse(f"element {at} has half of a surrogate pair, which UTF-8 cannot carry") from None
