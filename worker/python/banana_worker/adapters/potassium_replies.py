"""Turns the outputs of a Potassium app's functions into replies."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, NoReturn, Tuple

from banana_worker.failures.sentences import kind_of
from banana_worker.protocol.errors import ServeError
from banana_worker.reply.reply import BytesBody, JsonBody, Reply, ReplyHead, StreamBody, checked_headers
from banana_worker.text.utf8 import utf8
from potassium.types import Response, checked_status

JSON_TYPE = "application/json"
JSON_HEAD = ReplyHead(200, JSON_TYPE)


def then(output: Any, to_reply: Callable[[Any], Any]) -> Any:
    """The output of a function as a reply; for an awaitable, an awaitable of the reply."""
    if getattr(type(output), "__await__", None) is None:
        return to_reply(output)
    return _awaited(output, to_reply)


async def _awaited(output: Any, to_reply: Callable[[Any], Any]) -> Any:
    return to_reply(await output)


def replies_of(returned: Any) -> Any:
    """A value that is not a list is left as it is: the batch runner reports it."""
    return [reply_of_entry(entry) for entry in returned] if isinstance(returned, (list, tuple)) else returned


def reply_of_entry(entry: Any) -> Any:
    """An entry that is not a valid answer fails its own call."""
    try:
        return then(entry, reply_of)
    except Exception as error:
        return error


def reply_of(output: Any) -> Any:
    """The reply that a Response describes."""
    if not isinstance(output, Response):
        if isinstance(output, BaseException):
            return output
        given = f"the handler returned {kind_of(output)}; write `return Response(json=..., status=200)`"
        raise TypeError(f"Potassium Response object not returned: {given}")
    status = checked_status(output.status)
    body = _body_of(output)
    content_type, headers = _headers_of(output.headers)
    return Reply(ReplyHead(status, content_type or _type_of(output), headers), body)


def result_of(output: Any) -> Any:
    """A background function may return nothing."""
    return reply_of(output) if isinstance(output, Response) else json_of(output)


def json_of(output: Any) -> Any:
    """A handler of Potassium up to 0.0.4 returns any JSON value, a list or a text included."""
    if isinstance(output, BaseException):
        return output
    if isinstance(output, Response):
        return reply_of(output)
    if hasattr(output, "__next__") or hasattr(output, "__anext__"):
        raise TypeError("a generator was returned as JSON; return it in a Response to stream it")
    return Reply(JSON_HEAD, JsonBody(output))


def _body_of(response: Response) -> Any:
    if response.is_json:
        return JsonBody(response.json)
    body = response.body
    if body is None:
        return BytesBody(b"")
    if isinstance(body, str):
        return BytesBody(utf8(body))
    if isinstance(body, (bytes, bytearray, memoryview)):
        return BytesBody(bytes(body))
    if hasattr(body, "__aiter__"):
        return StreamBody(body.__aiter__())
    if isinstance(body, dict) or not hasattr(body, "__iter__"):
        raise TypeError(
            f"Potassium Response object body must be bytes, text, or an iterable of them, not {type(body).__name__}"
        )
    return StreamBody(iter(body))


def _type_of(response: Response) -> str:
    """The content type, if the headers name none."""
    if response.is_json:
        return JSON_TYPE
    if response.body is None:
        return ""
    return "text/plain; charset=utf-8" if isinstance(response.body, str) else "application/octet-stream"


def _headers_of(headers: Dict[str, Any]) -> Tuple[str, str]:
    """The content type, and the other headers as lines."""
    content_type = ""
    lines: List[str] = []
    for name, value in headers.items():
        for each in value if isinstance(value, (list, tuple)) else (value,):
            text = str(each)
            if "\n" in name or "\r" in name or "\n" in text or "\r" in text:
                _refuse_header(name)
            if name.lower() == "content-type":
                content_type = text
            else:
                lines += (name, text)
    return content_type, checked_headers("\n".join(lines), content_type)


def _refuse_header(name: str) -> NoReturn:
    """A line break would end the header and begin another one."""
    raise ServeError(
        "SERVE_OUTPUT_INVALID",
        f"The model's response header {json.dumps(name[:100], ensure_ascii=False)} has a line break in it.",
    )
