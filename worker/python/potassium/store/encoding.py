"""Values to bytes and back. No message contains any part of a value."""

from __future__ import annotations

import json
from typing import Any, Callable, NamedTuple

from banana_worker.standard_modules import import_standard

ENCODINGS = ("json", "msgpack", "pickle")


class Encoding(NamedTuple):
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]

    def encode(self, value: Any) -> bytes:
        """Raises TypeError if the value cannot be encoded."""
        try:
            return self.write(value)
        except Exception:
            # The encoder's own message may quote the value, and so may the errors before it.
            raise TypeError(
                f"The value ({type(value).__name__}) cannot be stored as {self.name}: it holds a cycle, or something that is not data."
            ) from None

    def decode(self, data: bytes) -> Any:
        """Raises ValueError if the bytes are not in this encoding."""
        try:
            return self.read(data)
        except Exception:
            raise ValueError(
                f"The stored value is not {self.name}; it was written with another encoding or by another program."
            ) from None


def encoding_named(name: str) -> Encoding:
    """Encoders other than JSON's are loaded when they are asked for."""
    if name == "json":
        from banana_worker.values.json_encoding import json_bytes

        return Encoding(name, json_bytes, json.loads)
    if name == "msgpack":
        from banana_worker.formats.msgpack_reader import read_value
        from banana_worker.formats.msgpack import write_value
        from banana_worker.values.plain_value import plain_value

        return Encoding(name, lambda value: bytes(write_value(plain_value(value, is_binary=True))), read_value)
    pickle = import_standard("pickle")
    return Encoding(name, pickle.dumps, pickle.loads)
