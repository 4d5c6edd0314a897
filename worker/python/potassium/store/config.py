"""The options of a store, and their check: an error is raised at construction, with the allowed values. No message
contains a value of a config."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple, Type, Union

DEFAULT_REDIS_PORT = 6379
ENCODINGS = ("json", "msgpack", "pickle")


class _Config:
    # Fields that hold text, and whether they must.
    _texts: Tuple[str, ...] = ()
    _need_texts = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(vars(self))})"  # without the values: there are passwords among them


class MemoryConfig(_Config):
    def __init__(self, encoding: str = "json") -> None:
        self.encoding = encoding


class LocalConfig(_Config):
    """`path`: the file, relative to the working directory; `.banana-store/store.sqlite3` if left out."""

    _texts = ("path",)

    def __init__(self, path: Optional[str] = None, encoding: str = "json") -> None:
        self.path = path
        self.encoding = encoding


class RedisConfig(_Config):
    """`url` replaces all that comes before it: `redis[s]://[[user][:password]@]host[:port][/db]`."""

    _texts = ("host", "username", "password", "url")

    def __init__(
        self,
        host: Optional[str] = None,
        port: Union[int, str, None] = None,
        username: Optional[str] = None,
        password: Optional[str] = None,
        db: Optional[int] = None,
        encoding: str = "json",
        *,
        url: Optional[str] = None,
    ) -> None:
        self.host = host
        self.port = port
        self.username = username
        self.password = password
        self.db = db
        self.encoding = encoding
        self.url = url


class S3Config(_Config):
    _texts = ("aws_access_key_id", "aws_secret_access_key", "bucket")
    _need_texts = True

    def __init__(
        self,
        aws_access_key_id: Optional[str] = None,
        aws_secret_access_key: Optional[str] = None,
        bucket: Optional[str] = None,
        encoding: str = "json",
    ) -> None:
        self.aws_access_key_id = aws_access_key_id
        self.aws_secret_access_key = aws_secret_access_key
        self.bucket = bucket
        self.encoding = encoding


_KINDS: Dict[str, Type[Any]] = {
    "memory": MemoryConfig,
    "local": LocalConfig,
    "redis": RedisConfig,
    "s3": S3Config,
}


def checked_config(backend: object, config: object) -> Any:
    """Returns the config in its class; a dict with the same fields is accepted too. Raises ValueError."""
    kind = _KINDS.get(backend) if isinstance(backend, str) else None
    if kind is None:
        raise ValueError(f"The store backend must be {_listed(_KINDS)}, not {_shown(backend)}.")
    fields = kind().__dict__
    takes = f"The config of a {backend} store must be a {kind.__name__} with {', '.join(fields)}"
    if isinstance(config, dict):
        unknown = [name for name in config if name not in fields]
        if unknown:
            raise ValueError(f"{takes}; {_shown(unknown[0])} is not one of them.")
        config = kind(**config)
    elif config is None and backend in ("memory", "local"):
        config = kind()
    if not isinstance(config, kind):
        raise ValueError(f"{takes}, not {_shown(config)}.")
    _check_fields(config)
    return config


def _check_fields(config: Any) -> None:
    if config.encoding not in ENCODINGS:
        raise ValueError(f"The encoding of a store must be {_listed(ENCODINGS)}, not {_shown(config.encoding)}.")
    for name in config._texts:
        value = getattr(config, name)
        is_absent = value is None and not config._need_texts
        if not is_absent and (not isinstance(value, str) or value == ""):
            raise ValueError(f"The {name} of a store must be a non-empty string.")
    if isinstance(config, RedisConfig):
        _check_redis(config)


def _check_redis(config: RedisConfig) -> None:
    if config.url is not None:
        for rival in ("host", "port", "username", "password", "db"):
            if getattr(config, rival) is not None:
                raise ValueError(f"A redis store takes either a url or host and port: both url and {rival} are set.")
        if not config.url.startswith(("redis://", "rediss://")):
            raise ValueError(
                "The url of a redis store must be redis://[[user][:password]@]host[:port][/db], or rediss:// for TLS."
            )
        return
    if config.host is None:
        raise ValueError("A redis store needs host (and port), or url.")
    if not 1 <= _number(config.port, DEFAULT_REDIS_PORT) <= 65_535:
        raise ValueError("The port of a redis store must be a number from 1 to 65535.")
    if _number(config.db, 0) < 0:
        raise ValueError("The db of a redis store must be a whole number from 0.")


def _number(value: object, default: int) -> int:
    """A whole number, given as such or as text; -1 for anything else."""
    if value is None:
        return default
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _listed(names: Any) -> str:
    *first, last = (repr(name) for name in names)
    return f"{', '.join(first)} or {last}"


def _shown(value: object) -> str:
    """A word of the caller as it is, anything else only by its type."""
    return repr(value[:40]) if isinstance(value, str) else type(value).__name__
