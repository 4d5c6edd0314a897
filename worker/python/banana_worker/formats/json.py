"""JSON bodies."""

from __future__ import annotations

import json
from typing import Any, Tuple

from banana_worker.failures.sentences import as_sentence
from banana_worker.protocol.errors import bad_body
from banana_worker.protocol.messages import Call
from banana_worker.text.json_limits import MAX_DIGITS, check_depth, digits_limit, read_integer
from banana_worker.values.json_encoding import json_bytes

ITEM_TYPE = "application/json"


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)

# Reads NaN, Infinity and -Infinity too.
WORDS = json.JSONDecoder()

# One number of so many digits takes 0.1 s to read, if Python reads it.
_LONG_TEXT_CHARS = 100_000

_BEGINNINGS = ("{", "[")
_SPACE = " \t\n\r"


def read(body: bytes, call: Call) -> object:
    """As `read_json`."""
    return read_json(body)


def read_json(
    body: bytes,
    what: str = "The body",
    decoder: json.JSONDecoder = _decoder,
) -> object:
    """Reads JSON (UTF-8, an optional byte order mark). `what` is its name in an error. @raises SERVE_BAD_BODY"""
    try:
        text = body.decode("utf-8")
        if text.startswith("\ufeff"):
            text = text[1:]
        check_depth(text)
        return _decode(text, decoder)
    except (ValueError, RecursionError) as cause:
        raise bad_body(f"{what} is not valid JSON: {as_sentence(_reason_of(cause))}") from cause


def _decode(text: str, decoder: json.JSONDecoder) -> object:
    if len(text) > _LONG_TEXT_CHARS and not 0 < digits_limit() <= MAX_DIGITS:
        options: Any = {"parse_constant": decoder.parse_constant, "parse_float": decoder.parse_float}
        decoder = json.JSONDecoder(parse_int=read_integer, **options)
    return _decode_fast(text, decoder) if text.startswith(_BEGINNINGS) else decoder.decode(text)


def _decode_fast(text: str, decoder: json.JSONDecoder) -> object:
    """`decode` without its search for space around the value, which costs as much as a small value itself."""
    value, end = decoder.raw_decode(text)
    if end == len(text) or not text[end:].strip(_SPACE):
        return value
    return decoder.decode(text)  # its error names the unexpected text


def _reason_of(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        problem = error.msg[: -len(" at")] if error.msg.endswith(" at") else error.msg
        return f"{problem} at line {error.lineno}, column {error.colno}"
    text = str(error)
    return f"it has a whole number of more than {MAX_DIGITS} digits" if "digits" in text else text


def write(value: object, call: Call) -> Tuple[str, bytes]:
    """The content type and the bytes of a value. @raises SERVE_OUTPUT_INVALID naming the property"""
    return "application/json", json_bytes(value, call.ascii_json)
