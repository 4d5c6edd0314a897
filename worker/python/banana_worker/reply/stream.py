"""Turns iterators into the chunks of a streamed reply, one item at a time."""

from __future__ import annotations

from typing import Any, AsyncIterator, Callable, Iterator, NamedTuple, Optional, Union

from banana_worker.formats.reply import ReplyHead, close_async_items, close_items
from banana_worker.text.charsets import utf8
from banana_worker.values.json_encoding import json_bytes


AnyIterator = Union[Iterator[object], AsyncIterator[object]]

NOTHING = object()
"""Stands for the first item of an empty stream."""


def iterator_of(value: object) -> Optional[AnyIterator]:
    """The iterator of a value that streams, else None. Iterators, generators (async or not) and open files stream;
    lists, text, dicts and other collections are values."""
    kind = type(value)
    if hasattr(kind, "__anext__"):
        return value  # type: ignore[return-value]
    if hasattr(kind, "__next__") and hasattr(kind, "__iter__"):
        return value  # type: ignore[return-value]
    return value.__aiter__() if hasattr(kind, "__aiter__") else None  # type: ignore[attr-defined]


class ItemEncoder(NamedTuple):
    """Encodes the items of one stream as bytes."""

    # Makes the head of the reply from the first item, or from NOTHING if there is none.
    head_for: Callable[[object], ReplyHead]
    item: Callable[[object], bytes]
    # Makes the chunk behind all items, if there is one.
    last: Optional[Callable[[], bytes]] = None


def encoder_for(accept: str) -> ItemEncoder:
    """The encoder for a stream without a head of its own."""
    if asks_for(accept, "text/event-stream"):
        return _EVENTS
    if asks_for(accept, "application/x-ndjson") or asks_for(accept, "application/ndjson"):
        return _JSON_LINES
    return _CHUNKS


def raw_items(head: ReplyHead, type_from_chunk: bool) -> ItemEncoder:
    """Bytes and text as they are, since an app with its own head may write events itself. Other values are encoded
    by the type."""
    if type_from_chunk:
        return ItemEncoder(lambda first: head._replace(content_type=chunk_type(first)), _chunk)
    if head.content_type.partition(";")[0].strip().lower() == "text/event-stream":
        return ItemEncoder(lambda first: head, _raw_or_event)
    return ItemEncoder(lambda first: head, _chunk)


def chunk_type(first: object) -> str:
    """The content type of a stream that begins with this item."""
    if isinstance(first, str):
        return "text/plain; charset=utf-8"
    is_bytes = first is NOTHING or isinstance(first, (bytes, bytearray, memoryview))
    return "application/octet-stream" if is_bytes else "application/x-ndjson"


def _raw(item: object) -> Optional[bytes]:
    if isinstance(item, str):
        return utf8(item)
    return bytes(item) if isinstance(item, (bytes, bytearray, memoryview)) else None


def _chunk(item: object) -> bytes:
    raw = _raw(item)
    return _json_line(item) if raw is None else raw


def _raw_or_event(item: object) -> bytes:
    raw = _raw(item)
    return _event(json_bytes(item)) if raw is None else raw


def _json_line(item: object) -> bytes:
    return json_bytes(item) + b"\n"


def _event(text: bytes) -> bytes:
    """Text may contain line breaks; each line is a `data:` field of one event (HTML standard, 9.2.6)."""
    lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    return b"data: " + lines + b"\n\n"


_EVENTS_HEAD = ReplyHead(200, "text/event-stream", "Cache-Control\nno-cache")
_EVENTS = ItemEncoder(
    lambda first: _EVENTS_HEAD, lambda item: _event(utf8(item) if isinstance(item, str) else json_bytes(item))
)
_JSON_LINES = ItemEncoder(lambda first: ReplyHead(200, "application/x-ndjson"), _json_line)
_CHUNKS = ItemEncoder(lambda first: ReplyHead(200, chunk_type(first)), _chunk)


class Chunks:
    """The chunks of a stream, an iterator or an async one (it has `__anext__`); closing it closes the app's own. `head` is that
    of the reply once the first chunk, or the end, has come. An exception of the chunks fails the call: a ServeError
    unchanged, any other as the app's failure."""

    def __init__(self, iterator: Any, encoder: ItemEncoder, on_end: Optional[Callable[[], None]]) -> None:
        self.head = ReplyHead()
        self._iterator = iterator
        self._encoder = encoder
        self._on_end = on_end
        self._began = False
        # The last chunk is out. The app's iterator is not asked again: it may wait for an item that never comes.
        self._is_over = False

    def _begin(self, first: object) -> None:
        self.head = self._encoder.head_for(first)
        self._began = True

    def _end(self) -> None:
        """The items have ended, in any way."""
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()

    def _last_chunk(self) -> Optional[bytes]:
        """The chunk behind all items; None if there is none."""
        self._is_over = True
        data = None if self._encoder.last is None else self._encoder.last()
        if not self._began:
            self._begin(NOTHING)
        return data


class SyncChunks(Chunks):
    """Raises the exceptions of the app's iterator, and of items that cannot be encoded."""

    def __iter__(self) -> SyncChunks:
        return self

    def __next__(self) -> bytes:
        if self._is_over:
            raise StopIteration
        try:
            item = next(self._iterator)
        except BaseException as over:
            self._end()
            last = self._last_chunk() if isinstance(over, StopIteration) else None
            if last is None:
                raise
            return last
        try:
            data = self._encoder.item(item)
        except Exception:
            self.close()
            raise
        if not self._began:
            self._begin(item)
        return data

    def close(self) -> None:
        """Ends the app's iterator early, so that its `finally` blocks run."""
        try:
            close_items(self._iterator)
        finally:
            self._end()


class AsyncChunks(Chunks):
    """As `SyncChunks`."""

    def __aiter__(self) -> AsyncChunks:
        return self

    async def __anext__(self) -> bytes:
        if self._is_over:
            raise StopAsyncIteration
        try:
            item = await self._iterator.__anext__()
        except BaseException as over:
            self._end()
            last = self._last_chunk() if isinstance(over, StopAsyncIteration) else None
            if last is None:
                raise
            return last
        try:
            data = self._encoder.item(item)
        except Exception:
            await self.aclose()
            raise
        if not self._began:
            self._begin(item)
        return data

    async def aclose(self) -> None:
        """Ends the app's iterator early, so that its `finally` blocks run."""
        try:
            await close_async_items(self._iterator)
        finally:
            self._end()


def chunks_of(iterator: Any, encoder: ItemEncoder, on_end: Optional[Callable[[], None]] = None) -> Chunks:
    """The chunks of an iterator of either kind. `on_end` is called once, when its items have ended in any way."""
    kind = AsyncChunks if hasattr(type(iterator), "__anext__") else SyncChunks
    return kind(iterator, encoder, on_end)


def asks_for(accept: str, content_type: str) -> bool:
    """Whether the type is acceptable by name: listed, with a quality above 0 and not below `application/json`'s."""
    if content_type not in accept.lower():
        return False
    wanted = _quality_of(accept, content_type)
    return wanted > 0 and wanted >= _quality_of(accept, "application/json")


def _quality_of(accept: str, content_type: str) -> float:
    for media_range in accept.split(","):
        name, *parameters = (part.strip().lower() for part in media_range.split(";"))
        if name != content_type:
            continue
        quality = next((parameter[2:] for parameter in parameters if parameter.startswith("q=")), "1")
        try:
            return float(quality) if float(quality) < float("inf") else 0.0
        except ValueError:
            return 0.0
    return 0.0
