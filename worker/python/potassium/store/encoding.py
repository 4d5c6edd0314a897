"""Values to bytes and back. No message holds anything of a value."""

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
        """Raises TypeError if the value has no such form."""
        try:
            return self.write(value)
        except Exception:
            # The encoder's own words may quote the value, and so may the errors before it.
            raise TypeError(
                f"The value ({type(value).__name__}) cannot be stored as {self.name}: it holds a cycle, or what is no data."
            ) from None

    def decode(self, data: bytes) -> Any:
        """Raises ValueError if the bytes are something else."""
        try:
            return self.read(data)
        except Exception:
            raise ValueError(
                f"The stored value is not {self.name}; it was written with another encoding or by others."
            ) from None


def encoding_named(name: str) -> Encoding:
    """The encoders of other values than JSON are loaded when they are asked for."""
    if name == "json":
        from banana_worker.reply.json_encoding import json_bytes

        return Encoding(name, json_bytes, json.loads)
    if name == "msgpack":
        from banana_worker.formats.msgpack import read_msgpack
        from banana_worker.formats.msgpack_writer import write_value
        from banana_worker.reply.plain_value import plain_value

        return Encoding(name, lambda value: bytes(write_value(plain_value(value, is_binary=True))), read_msgpack)
    pickle = import_standard("pickle")
    return Encoding(name, pickle.dumps, pickle.loads)
