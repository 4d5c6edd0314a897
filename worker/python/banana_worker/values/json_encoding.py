"""Encodes values as JSON at the speed of Python's own encoder, which calls back for values that it does not know. If
it fails, a slow walk over the whole value converts the rest (NaN and infinities become null), or names the place
of a value that cannot be encoded."""

from __future__ import annotations

import json
from typing import Callable, Dict

from banana_worker.failures.outlook import is_of_process
from banana_worker.protocol.errors import ServeError
from banana_worker.values.conversions import Simpler, simpler, simpler_without_bytes
from banana_worker.values.plain_value import plain_value

Encode = Callable[[object], str]


def json_bytes(value: object, ascii_only: bool = False) -> bytes:
    """The UTF-8 bytes of `json_text`. @raises SERVE_OUTPUT_INVALID naming the property"""
    return _utf8(json_text(value, ascii_only))


def json_argument(value: object, function: str) -> bytes:
    """JSON of a value that the app passes to a function of ours. @raises TypeError that names the function and the
    place of a value that is not data"""
    try:
        return json_bytes(value)
    except ServeError as cause:
        raise TypeError(cause.message.replace("The output", f"{function}: the value", 1)) from cause


def json_text(value: object, ascii_only: bool = False, has_hints: bool = True) -> str:
    """The value as JSON, in one line. `has_hints`: the log names numbers that JSON does not have. @raises
    SERVE_OUTPUT_INVALID naming the property"""
    return _text(value, _ASCII if ascii_only else _PLAIN, simpler, has_hints)


def indented_json_bytes(value: object, ascii_only: bool, indent: int) -> bytes:
    """JSON of the value, as Multi Model Server writes it: bytes inside the value are refused. @raises
    SERVE_OUTPUT_INVALID naming the property"""
    step = simpler_without_bytes
    encoder = json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False, default=step, indent=indent)
    return _utf8(_text(value, encoder.encode, step, True))


def _utf8(text: str) -> bytes:
    # UTF-8 cannot hold half of a surrogate pair; JSON has an escape for it.
    return text.encode("utf-8", "backslashreplace")


def _text(value: object, encode: Encode, step: Simpler, has_hints: bool) -> str:
    try:
        return encode(value)
    except Exception as error:
        if is_of_process(error):
            raise
        # Whatever the error was (code of the app may have run): the walk meets it again, and knows the place.
        plain = plain_value(value, False, step, has_hints)
    return encode(plain)


def _compact(ascii_only: bool) -> Encode:
    """`encode` of Python's encoder, with its C part made only once: it makes one for each value, which takes as long
    as encoding a small value."""
    whole = json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False, default=simpler, separators=(",", ":"))
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return whole.encode
    # The containers around the value that is being written.
    around: Dict[int, object] = {}
    text_of = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    write = make(around, whole.default, text_of, None, ":", ",", False, False, False)

    def encode(value: object) -> str:
        try:
            return "".join(write(value, 0))
        except BaseException:
            around.clear()
            raise

    return encode


_PLAIN = _compact(ascii_only=False)
_ASCII = _compact(ascii_only=True)
