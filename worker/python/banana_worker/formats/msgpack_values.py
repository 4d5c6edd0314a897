"""Values of programs that call the app as a function: MessagePack, in which arrays stay arrays. No request over HTTP can
choose this format.

An array is an extension: its datatype, its shape, and its elements in their order in memory; those of BYTES are a
list.
"""

from __future__ import annotations

import struct
from typing import Any, List, Optional

from banana_worker.formats import AnyExchange
from banana_worker.formats.reply import BytesBody, Reply, ReplyHead, StreamBody, assert_no_error, value_of
from banana_worker.formats.tensors.arrays import array_of, for_app, tensor_of_array
from banana_worker.protocol.errors import bad_body
from banana_worker.protocol.msgpack import Extension, Reader, read_value, write_value
from banana_worker.values.conversions import is_array
from banana_worker.values.plain_value import plain_value
from banana_worker.values.tensor import Tensor, elements_of

ITEM_REFUSAL = "A custom service of Multi Model Server takes bytes of HTTP, not values of a program."

# The type of the extension.
_TENSOR = 1


class Exchange(AnyExchange):
    is_of_program = True

    def read(self, body: bytes) -> object:
        try:
            return read_value(body, _ValueReader)
        except (ValueError, TypeError) as cause:
            raise bad_body(f"The value cannot be read: {cause}") from cause

    def write(self, answer: Reply) -> Reply:
        head, body = answer.head, answer.body
        assert_no_error(answer)
        if isinstance(body, StreamBody):
            return Reply(ReplyHead(), StreamBody(body.items, encode=_item))
        return Reply(ReplyHead(), BytesBody(_written(value_of(body, head.content_type))))


def _item(value: object) -> bytes:
    """An item stands behind its length, because the wire cuts a stream anywhere."""
    data = _written(value)
    return struct.pack("<I", len(data)) + data


def _written(value: object) -> bytes:
    return write_value(plain_value(value, is_binary=True, own=_extension_of))


def _extension_of(value: object) -> Optional[Extension]:
    """None for a value that is no array, or one of no datatype."""
    tensor: Any = value if isinstance(value, Tensor) else _tensor_of(value)
    if not isinstance(tensor, Tensor):
        return None
    pieces: List[Any] = [write_value(tensor.datatype), write_value(list(tensor.shape))]
    if tensor.datatype == "BYTES":
        pieces.append(write_value([item.encode() if isinstance(item, str) else bytes(item) for item in tensor.data]))
    else:
        pieces.append(tensor.data.cast("B"))
    return Extension(_TENSOR, pieces)


def _tensor_of(value: object) -> Any:
    """A number of numpy is a number."""
    if isinstance(value, (dict, list, tuple)) or not is_array(value):
        return None
    array = array_of(value)
    return None if array is None or array.ndim == 0 else tensor_of_array(array)


class _ValueReader(Reader):
    def extended(self, kind: int, data: bytes) -> object:
        if kind != _TENSOR:
            return super().extended(kind, data)
        reader = _ValueReader(data)
        datatype: Any = reader.value(0)
        shape: Any = reader.value(0)
        if datatype == "BYTES":
            return for_app(Tensor(datatype, shape, reader.value(0)))
        elements = bytearray(memoryview(data)[reader.at :])  # in memory of its own, which the app may write to
        return for_app(Tensor(datatype, shape, elements_of(datatype, elements)))
