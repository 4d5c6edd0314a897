"""Turns an app's output into the answer for the front: first by the output's type, then by the formats that the
client accepts."""

from __future__ import annotations

from typing import NamedTuple, Union

from banana_worker.formats import BY_ACCEPT, AnyExchange, format_named
from banana_worker.process.outgoing import BytesLike
from banana_worker.protocol.messages import Call
from banana_worker.formats.reply import (
    BytesBody,
    JsonBody,
    Reply,
    ReplyHead,
    ResultBody,
    StreamBody,
    ValueBody,
    close_unsent,
)
from banana_worker.reply.response import Response, reply_of_response
from banana_worker.reply.stream import (
    Chunks,
    ItemEncoder,
    asks_for,
    chunks_of,
    encoder_for,
    iterator_of,
    raw_items,
)
from banana_worker.standard_modules import import_standard
from banana_worker.values.conversions import PNG_TYPE, is_image, png_bytes
from banana_worker.values.json_encoding import json_bytes


class WholeAnswer(NamedTuple):
    head: ReplyHead
    body: BytesLike


Answer = Union[WholeAnswer, Chunks]

# The header of most clients, which names no type.
_ANY_TYPE = "*/*"

_BYTES = (bytes, bytearray, memoryview)
_JSON_HEAD = ReplyHead(200, "application/json")
_BYTES_HEAD = ReplyHead(200, "application/octet-stream")


def written_answer(output: object, call: Call, exchange: AnyExchange) -> Answer:
    """The answer to a call as the dialect's own format writes it. @raises as `answer_of`, and ServeError"""
    if isinstance(output, BaseException) and not isinstance(output, Response):
        raise output
    reply = reply_of(output)
    try:
        return _reply_answer(exchange.write(reply), call)
    except BaseException:
        close_unsent(reply.body)
        raise


def reply_of(output: object) -> Reply:
    """Any output as a reply in which nothing is encoded yet."""
    if isinstance(output, Reply):
        return output
    if isinstance(output, Response):
        return reply_of_response(output)
    iterator = None if isinstance(output, (str, bytes, dict, list, tuple)) else iterator_of(output)
    return Reply(ReplyHead(), ValueBody(output) if iterator is None else StreamBody(iterator, by_accept=True))


def answer_of(output: object, call: Call) -> Answer:
    """The answer to a call. An exception that was returned is raised. @raises ServeError SERVE_OUTPUT_INVALID for an
    output that cannot be encoded."""
    kind = type(output)
    if kind is not dict and kind is not list:
        special = _special_answer(output, call)
        if special is not None:
            return special
    if call.accept != _ANY_TYPE:
        for content_type, name in BY_ACCEPT:
            if asks_for(call.accept, content_type):
                return WholeAnswer(ReplyHead(200, content_type), format_named(name).write(output, call)[1])
    return WholeAnswer(_JSON_HEAD, json_bytes(output, call.ascii_json))


def _special_answer(output: object, call: Call) -> Union[Answer, None]:
    """The answer for an output that is not written in a format of the client's choice; None for any other."""
    if isinstance(output, Reply):
        return _reply_answer(output, call)
    if isinstance(output, _BYTES):
        return WholeAnswer(_BYTES_HEAD, _flat(output))
    if output is None or isinstance(output, (str, int, float, dict, list, tuple)):
        return None
    if isinstance(output, Response):
        return _reply_answer(reply_of_response(output), call)
    if isinstance(output, BaseException):
        raise output
    if is_image(output):
        return WholeAnswer(ReplyHead(200, PNG_TYPE), png_bytes(output))
    iterator = iterator_of(output)
    return None if iterator is None else chunks_of(iterator, encoder_for(call.accept))


def _flat(data: BytesLike) -> BytesLike:
    """The bytes in their order, whatever the shape of a view."""
    if isinstance(data, memoryview):
        return data.cast("B") if data.c_contiguous else data.tobytes()
    return data


def _reply_answer(reply: Reply, call: Call) -> Answer:
    head, body = reply.head, reply.body
    if isinstance(body, ValueBody):
        return answer_of(body.value, call)
    if isinstance(body, JsonBody):
        return WholeAnswer(head, json_bytes(body.value, call.ascii_json))
    if isinstance(body, BytesBody):
        return WholeAnswer(head, _flat(body.data))
    if isinstance(body, ResultBody):
        content_type, data = import_standard("banana_worker.formats.mms").write_result(body.value, call)
        return WholeAnswer(head if head.content_type else head._replace(content_type=content_type), data)
    if body.encode is not None:
        encoder = ItemEncoder(lambda first: head, body.encode, body.last)
    else:
        encoder = encoder_for(call.accept) if body.by_accept else raw_items(head, body.type_from_chunk)
    return chunks_of(body.items, encoder, body.on_end)
