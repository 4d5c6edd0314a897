"""Finds wire formats by name: the module of that name in this folder. A new format is a file, and no line here.

A format has `read(body, call)`, which raises a ServeError to refuse the body with 400, or with the `status` of the
error, whatever its code but those of `CALL_ERRORS`. A format that clients can ask for has `write(value, call)`. A
dialect's own format has `Exchange` instead, a class like the one below. A format in which a custom service can be
called has `ITEM_TYPE`, the media type of such a body as the service sees it.
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from banana_worker.formats.reply import Reply
from banana_worker.protocol.errors import ServeError, bad_body
from banana_worker.protocol.messages import Call
from banana_worker.standard_modules import import_standard
from banana_worker.values.tensor import Signature


CallParams = Mapping[str, Union[str, int, float, bool]]

# The formats that are loaded, by name; the others are loaded by the first call that names them.
LOADED_FORMATS: Dict[str, ModuleType] = {}

# Formats of an answer that a client gets if its Accept header names their type; JSON otherwise.
BY_ACCEPT = (
    ("application/msgpack", "msgpack"),
    ("application/x-msgpack", "msgpack"),
    ("application/vnd.msgpack", "msgpack"),
)

_FORMAT_NAME = re.compile(r"[a-z][a-z0-9-]*\Z")


def format_named(name: str) -> ModuleType:
    """The module of the format that a dialect names, or that `read_input.py` finds for the content type. @raises
    ServeError SERVE_BAD_BODY if this worker has no such format"""
    return LOADED_FORMATS.get(name) or _load_format(name)


def _load_format(name: str) -> ModuleType:
    try:
        if not _FORMAT_NAME.match(name):
            raise _unknown_format(name)
        module: ModuleType = import_standard(f"{__name__}.{name.replace('-', '_')}")
    except ImportError as cause:
        raise _unknown_format(name) from cause
    if not hasattr(module, "read") and not hasattr(module, "Exchange"):
        raise _unknown_format(name)
    LOADED_FORMATS[name] = module
    return module


class AnyExchange:
    """The body and the answer of one call in a dialect's own format. It may keep what the reader learns for the
    writer."""

    # The caller is a program: it may see the app's own exception, and None is an answer.
    is_of_program = False

    def __init__(self, call: Call, signature: Optional[Signature] = None) -> None:
        """`signature`: None for an app that has none."""
        self.call = call
        self.signature = signature
        # The app takes texts as numbers of its tokens, too.
        self.takes_tokens = False
        # Parameters of the request for the app, if the body has some; complete once the body is read.
        self.params: CallParams = {}

    def read(self, body: bytes) -> object:
        """The app's input; the body may be empty. @raises ServeError as the `read` of any format does"""
        raise NotImplementedError

    def write(self, answer: Reply) -> Reply:
        """The answer to send for the app's own, whose value, bytes or stream is not encoded yet. Not called for
        errors, which the front words. @raises ServeError for the client; a stream is closed then"""
        raise NotImplementedError


def exchange_of(call: Call, app: Any) -> AnyExchange:
    """Makes the exchange of a call whose answer a dialect's own format writes. `app`: its description of itself. @raises
    ServeError SERVE_BAD_BODY if this worker has no such format"""
    make: Optional[Callable[[Call, Optional[Signature]], AnyExchange]] = getattr(
        format_named(call.answer), "Exchange", None
    )
    if make is None:
        raise bad_body(f'The format "{call.answer}" does not write answers.')
    exchange = make(call, app.signature)
    exchange.takes_tokens = app.token_input
    return exchange


def _unknown_format(name: str) -> ServeError:
    return bad_body(f'The worker of this model does not have the format "{name[:100]}".')


class Inputs:
    def __init__(self, field: str, values: List[Any], most: int) -> None:
        """`field`: the field of the body that has them; `most`: inputs that the app takes together."""
        self.field = field
        self.values = values
        self.most = most

    def accepted(self, accept: Callable[[Any], Any]) -> Inputs:
        """All of them as `accept` returns each, before the app gets one. @raises ServeError its error, with the place"""
        accepted: List[Any] = []
        for at, value in enumerate(self.values):
            try:
                accepted.append(accept(value))
            except ServeError as error:
                raise self.error_at(at, error) from None
        return Inputs(self.field, accepted, self.most)

    def error_at(self, index: int, error: ServeError) -> ServeError:
        """The error of one input, with its place in the body."""
        message = f"{self.field}[{index}]: {error.message}"
        issues: List[Tuple[Sequence[object], str]] = [([self.field, index, *path], text) for path, text in error.issues]
        return ServeError(error.code, message, error.detail, error.status, error.kind, issues)
