"""Checks the outputs of a Potassium app's functions. A Response, and any other exception that was returned, stays as it is:
the call ends with it."""

from __future__ import annotations

from typing import Any

from banana_worker.adapters.coroutine_functions import then
from banana_worker.failures.sentences import kind_of
from banana_worker.formats.reply import JsonBody, Reply, ReplyHead
from banana_worker.reply.response import JSON_TYPE

JSON_HEAD = ReplyHead(200, JSON_TYPE)


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
    """A handler must return a Response."""
    if isinstance(output, BaseException):
        return output
    given = f"the handler returned {kind_of(output)}; write `return Response(json=..., status=200)`"
    raise TypeError(f"Potassium Response object not returned: {given}")


def json_of(output: Any) -> Any:
    """A background function, and a handler of Potassium up to 0.0.4, may return any JSON value, a list, a text or None
    included."""
    if isinstance(output, BaseException):
        return output
    if hasattr(output, "__next__") or hasattr(output, "__anext__"):
        raise TypeError("a generator was returned as JSON; return it in a Response to stream it")
    return Reply(JSON_HEAD, JsonBody(output))
