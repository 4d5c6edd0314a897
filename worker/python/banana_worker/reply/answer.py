"""From what an app returned to what leaves the worker."""

from __future__ import annotations

import inspect
import json
from typing import Any, AsyncIterator, Callable, Iterator, NamedTuple, Union

from banana_worker.errors import ServeError
from banana_worker.messages import Call
from banana_worker.reply.reply import ReplyHead

BytesLike = Union[bytes, bytearray, memoryview]


class WholeAnswer(NamedTuple):
    head: ReplyHead
    body: BytesLike


class StreamedAnswer(NamedTuple):
    """`chunks` is an iterator, or an async iterator (it has `__anext__`), of the bytes to send; closing it closes what the
    app gave. `head` may be a function: it is called once, when the first chunk, or the end, is there. What `chunks` raises
    fails the call: a ServeError as it is, anything else as the app's failure."""

    head: Union[ReplyHead, Callable[[], ReplyHead]]
    chunks: Union[Iterator[BytesLike], AsyncIterator[BytesLike]]


def answer_of(output: Any, call: Call) -> Union[WholeAnswer, StreamedAnswer]:
    """`output` is what the app returned, no awaitable. @raises ServeError SERVE_OUTPUT_INVALID"""
    if isinstance(output, (bytes, bytearray, memoryview)):
        return WholeAnswer(ReplyHead(content_type="application/octet-stream"), output)
    if inspect.isgenerator(output):
        return StreamedAnswer(STREAM_HEAD, _lines(output))
    if inspect.isasyncgen(output):
        return StreamedAnswer(STREAM_HEAD, _async_lines(output))
    try:
        body = json.dumps(output, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise ServeError("SERVE_OUTPUT_INVALID", "The output cannot be encoded: %s" % error)
    return WholeAnswer(ReplyHead(content_type="application/json"), body)


STREAM_HEAD = ReplyHead(content_type="application/x-ndjson")


def _lines(items: Iterator[Any]) -> Iterator[BytesLike]:
    for item in items:
        yield _line(item)


async def _async_lines(items: AsyncIterator[Any]) -> AsyncIterator[BytesLike]:
    async for item in items:
        yield _line(item)


def _line(item: Any) -> bytes:
    return item.encode() if isinstance(item, str) else json.dumps(item).encode() + b"\n"
