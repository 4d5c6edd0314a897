"""The binary tensor data extension: the elements of a tensor as bytes, little-endian and row-major, as they lie in the
memory of the computers that run us."""

from __future__ import annotations

import struct
from typing import Any, List, Sequence, Union

from banana_worker.formats.tensors.elements import Refuse
from banana_worker.values.tensor import Tensor, element_count, elements_of, shown, size_of

_LENGTH = struct.Struct("<I")


def tensor_of_bytes(datatype: str, shape: Sequence[int], data: memoryview, refuse: Refuse) -> Tensor:
    """A tensor of a checked shape from its bytes. They are copied once: a body cannot be written to, and elements need
    not be aligned in it. @raises the error of `refuse`"""
    count = element_count(shape)
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
