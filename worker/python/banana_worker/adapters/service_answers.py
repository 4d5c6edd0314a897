"""Turns the output of a custom service for a batch into one answer per item."""

from __future__ import annotations

import inspect
from typing import Any, Callable, List

from mms.context import Context

from banana_worker.failures.sentences import kind_of
from banana_worker.protocol.errors import ServeError
from banana_worker.formats.reply import Reply, ReplyHead, ResultBody, StreamBody, checked_headers
from banana_worker.reply.stream import iterator_of

# Clients of Multi Model Server know these texts.
_NO_LIST = "Invalid model predict output"
_WRONG_LENGTH = "number of batch response mismatched"

# Headers that must not stand among those of a message: those of the connection (RFC 9110 section 7.6.1), and the type.
_HOP_HEADERS = frozenset(
    "content-length content-type connection keep-alive transfer-encoding upgrade trailer".split(),
)


def answers_of(
    returned: object,
    context: Context,
    items: int,
    on_stream_end: Callable[[], None],
    on_all_ended: Callable[[], None],
) -> List[Any]:
    """An invalid answer becomes the error of its item, an invalid output that of all items.

    `on_stream_end` is called when a stream has given its last chunk, `on_all_ended` when every stream of the batch
    has ended.
    """
    open_streams = _OpenStreams(on_stream_end, on_all_ended)
    results = _results_of(returned, items)
    answers = [_answer_of(result, context, idx, open_streams) for idx, result in enumerate(results)]
    open_streams.close()
    return answers


class _OpenStreams:
    """Counts the running streams, and the batch itself while its results are read."""

    def __init__(self, on_stream_end: Callable[[], None], on_all_ended: Callable[[], None]) -> None:
        self._on_stream_end = on_stream_end
        self._on_all_ended = on_all_ended
        self._count = 1

    def close(self) -> None:
        self._count -= 1
        if self._count == 0:
            self._on_all_ended()

    def open(self) -> Callable[[], None]:
        """Counts one more. Returns the function to call when it has ended."""
        self._count += 1
        return self._ended

    def _ended(self) -> None:
        self._on_stream_end()
        self.close()


def _results_of(returned: object, items: int) -> List[Any]:
    if isinstance(returned, list) and len(returned) == items:
        return returned
    if isinstance(returned, list):
        for result in returned:
            if inspect.iscoroutine(result):
                result.close()
        message, given = _WRONG_LENGTH, f"{len(returned)} results"
    else:
        message, given = _NO_LIST, kind_of(returned)
    plural = "" if items == 1 else "s"
    detail = f"{message}: the handler returned {given} for {items} item{plural}; it must return a list with one result for each, in their order."
    error = ServeError("SERVE_OUTPUT_INVALID", message, detail)
    return [error] * items


def _answer_of(result: Any, context: Context, idx: int, open_streams: _OpenStreams) -> Any:
    """Never raises."""
    if isinstance(result, BaseException):
        return result
    try:
        head = _head_of(context, idx)
    except ServeError as error:
        return error
    items = iterator_of(result)
    if items is None:
        return Reply(head, ResultBody(result))
    return Reply(head, StreamBody(items, type_from_chunk=head.content_type == "", on_end=open_streams.open()))


_PLAIN_HEAD = ReplyHead()


def _head_of(context: Context, idx: int) -> ReplyHead:
    """The head without the type, which has a field of its own. Raises SERVE_OUTPUT_INVALID if the headers are too
    long."""
    processor = context._processor_if_asked(idx)
    if processor is None:
        return _PLAIN_HEAD
    lines: List[str] = []
    for name, value in processor.get_response_headers().items():
        if name.lower() not in _HOP_HEADERS:
            lines += [name, value]
    content_type = processor.get_response_header("content-type") or ""
    return ReplyHead(
        status=processor.get_response_status_code(),
        content_type=content_type,
        headers=checked_headers("\n".join(lines), content_type),
        phrase=processor.get_response_status_phrase(),
    )
