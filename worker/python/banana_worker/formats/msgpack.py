"""MessagePack bodies: written without extension types, so that any reader can read them."""

from __future__ import annotations

from typing import Tuple

from banana_worker.failures.sentences import as_sentence
from banana_worker.protocol.errors import bad_body
from banana_worker.protocol.messages import Call
from banana_worker.protocol.msgpack import read_value, write_value
from banana_worker.values.plain_value import plain_value

ITEM_TYPE = "application/msgpack"


def read(body: bytes, call: Call) -> object:
    """Reads one MessagePack value; timestamps become aware datetimes. @raises SERVE_BAD_BODY"""
    try:
        return read_value(body)
    except ValueError as cause:
        raise bad_body(f"The body is not valid MessagePack: {as_sentence(str(cause))}") from cause


def write(value: object, call: Call) -> Tuple[str, bytes]:
    """The content type and the bytes of a value. @raises SERVE_OUTPUT_INVALID naming the property"""
    return "application/msgpack", write_value(plain_value(value, is_binary=True))
