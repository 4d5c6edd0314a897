"""A small key-value store for apps: `Store(backend, config)`, then `get`, `set`, `delete`, `has`.

This file has the parts that all backends share: keys, lifetimes, encoding, the end. The constructor checks its
options and loads the package that the backend needs; the first call connects, or opens the file.
"""

from __future__ import annotations

import json
from typing import Any, Callable, NamedTuple, Optional

from banana_worker.stand_in import names_of_module
from banana_worker.standard_modules import import_standard

from .backend import Backend
from .config import LocalConfig, MemoryConfig, RedisConfig, S3Config, checked_config

__all__ = ["LocalConfig", "MemoryConfig", "RedisConfig", "S3Config", "Store"]

DEFAULT_TTL_SECONDS = 600
# 300 years; a value with a longer lifetime never expires.
MAX_TTL_SECONDS = 1e10


class Store:
    """Keeps values between calls. May be used from several threads, and in forked children."""

    def __init__(self, backend: str = "redis", config: Any = None) -> None:
        """Raises ValueError that lists the allowed values if the backend or its config is wrong; ImportError without
        the backend's package."""
        config = checked_config(backend, config)
        self._encoding: Encoding = encoding_named(config.encoding)
        self._backend = _backend_of(backend, config)
        self._is_closed = False

    def get(self, key: str) -> Any:
        """A copy of the value; None if the key is missing or expired."""
        data = self._open(key).get(key)
        return None if data is None else self._encoding.decode(data)

    def set(self, key: str, value: Any, ttl: Optional[float] = DEFAULT_TTL_SECONDS) -> None:
        """Returns once every later `get` finds the value. `ttl` in seconds, fractions allowed; None: it never
        expires."""
        backend = self._open(key)
        checked_ttl(ttl)
        backend.set(key, self._encoding.encode(value), ttl)

    def delete(self, key: str) -> bool:
        """Returns whether there was a value."""
        return self._open(key).delete(key)

    def has(self, key: str) -> bool:
        """Whether there is a value; also true for a stored None."""
        return self._open(key).has(key)

    def close(self) -> None:
        """Frees file or connection. Values stay, except those of `memory`."""
        if not self._is_closed:
            self._is_closed = True
            self._backend.close()

    def _open(self, key: object) -> Backend:
        checked_key(key)
        if self._is_closed:
            raise ValueError("The store is closed.")
        return self._backend


def _backend_of(backend: str, config: Any) -> Backend:
    """Each backend is imported on demand, so that `import potassium` does not load them all."""
    module, kind = _CLASSES[backend]
    return getattr(import_standard(f"{__name__}.{module}"), kind)(config)


_CLASSES = {
    "memory": ("backend", "MemoryBackend"),
    "local": ("local", "LocalBackend"),
    "redis": ("redis_backend", "RedisBackend"),
    "s3": ("s3", "S3Backend"),
}


def checked_key(key: object) -> None:
    if not isinstance(key, str) or key == "":
        raise ValueError("A key must be a non-empty string.")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise ValueError("A key must be valid text; this one has half of a surrogate pair.") from None


def checked_ttl(ttl: object) -> None:
    if ttl is None:
        return
    if isinstance(ttl, (int, float)) and not isinstance(ttl, bool) and 0 < ttl <= MAX_TTL_SECONDS:
        return
    raise ValueError(
        f"ttl must be a number of seconds above 0 and up to {MAX_TTL_SECONDS:.0f}, or None for a value that never"
        " expires."
    )


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
        from banana_worker.protocol.msgpack import read_value, write_value
        from banana_worker.values.plain_value import plain_value

        return Encoding(name, lambda value: bytes(write_value(plain_value(value, is_binary=True))), read_value)
    pickle = import_standard("pickle")
    return Encoding(name, pickle.dumps, pickle.loads)


__getattr__ = names_of_module(__name__, __all__)
