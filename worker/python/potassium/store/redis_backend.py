"""Values in a Redis, as plain `SET key value PX ttl`: other programs, TypeScript apps among them, read and write
them."""

from __future__ import annotations

import math
import re
from typing import Any, Callable, Optional, TypeVar

from .backend import Backend, load_package
from .config import DEFAULT_REDIS_PORT, RedisConfig

# The time limit of connecting, and of each answer, in seconds.
CALL_LIMIT_S = 5

T = TypeVar("T")


class RedisBackend(Backend):
    """The package manages the connections: it opens one for each thread and process that needs it, and replaces one
    that has died."""

    def __init__(self, config: RedisConfig) -> None:
        self._redis = load_package("redis")
        self._client = self._client_of(config)
        place = self._client.connection_pool.connection_kwargs
        self._where = f"Redis at {place.get('host', 'localhost')}:{place.get('port', DEFAULT_REDIS_PORT)}"

    def get(self, key: str) -> Optional[bytes]:
        return self._call(lambda: self._client.get(key))

    def set(self, key: str, data: bytes, ttl: Optional[float]) -> None:
        lifetime_ms = None if ttl is None else math.ceil(ttl * 1000)
        self._call(lambda: self._client.set(key, data, px=lifetime_ms))

    def delete(self, key: str) -> bool:
        return self._call(lambda: self._client.delete(key)) == 1

    def has(self, key: str) -> bool:
        return self._call(lambda: self._client.exists(key)) == 1

    def close(self) -> None:
        self._client.connection_pool.disconnect()

    def _client_of(self, config: RedisConfig) -> Any:
        limits = {"socket_timeout": CALL_LIMIT_S, "socket_connect_timeout": CALL_LIMIT_S}
        if config.url is None:
            return self._redis.Redis(
                host=config.host,
                port=int(config.port or DEFAULT_REDIS_PORT),
                username=config.username,
                password=config.password,
                db=int(config.db or 0),
                **limits,
            )
        try:
            return self._redis.Redis.from_url(config.url, **limits)
        except ValueError:
            # The package's own message may quote the URL, password included.
            raise ValueError("The url of a redis store must be redis://[[user][:password]@]host[:port][/db].") from None

    def _call(self, command: Callable[[], T]) -> T:
        """Errors name host and port. A reply of Redis may quote the command, so it is left out."""
        errors = self._redis.exceptions
        try:
            return command()
        except errors.TimeoutError:
            raise TimeoutError(f"{self._where} did not answer within {CALL_LIMIT_S} s.") from None
        except errors.ResponseError as error:
            text = re.sub(r"[,;]? with args beginning with.*", "", str(error), flags=re.DOTALL)
            raise RuntimeError(f"{self._where} refused: {text}") from None
        except errors.ConnectionError as error:
            raise ConnectionError(f"{self._where} cannot be reached: {error}") from None
