"""Items of a custom service: a value for each parameter of the query and each field of the body, or `body` for the
whole body; and back, the result of an item to the bytes of its answer."""

from __future__ import annotations

import json
from typing import Any, List, Tuple

from mms.context import ItemPart, ReadItem

from banana_worker.formats import format_named
from banana_worker.formats.form import form_pairs
from banana_worker.formats.json import read_json
from banana_worker.process.outgoing import BytesLike
from banana_worker.protocol.errors import ServeError
from banana_worker.protocol.messages import Call
from banana_worker.text.header_params import media_type
from banana_worker.text.charsets import utf8
from banana_worker.values.json_encoding import indented_json_bytes

# A dialect whose bodies are JSON sends an empty body for no value.
_NO_VALUE = ItemPart("body", None, "application/json", b"null")


def read_item(body: bytes, call: Call, is_raw: bool = False) -> ReadItem:
    """`is_raw`: all values are bytes. Of several fields with one name, the last is read. Raises SERVE_BAD_BODY."""
    kind = media_type(call.content_type) if call.format == "auto" else _item_type_of(call.format)
    parts = _parts_of_pairs(call.params.encode()) if call.params else []
    if kind == "multipart/form-data":
        parts += _parts_of_multipart(body, call.content_type)
    elif kind == "application/x-www-form-urlencoded":
        parts += _parts_of_pairs(body)
    elif call.format == "json" and not body and not is_raw:
        parts.append(_NO_VALUE)
    else:
        parts.append(ItemPart("body", None, kind, body))
    last = parts if len(parts) == 1 else {part.name: part for part in parts}.values()
    return ReadItem({part.name: _value_of(part, is_raw) for part in last}, parts)


def _item_type_of(name: str) -> str:
    """The media type of a body whose format the dialect fixes."""
    body_format = format_named(name)
    kind = getattr(body_format, "ITEM_TYPE", None)
    if kind is None:
        refusal = f"A custom service cannot be called in the format {json.dumps(name)}."
        raise _bad_item(getattr(body_format, "ITEM_REFUSAL", refusal))
    return str(kind)


def _parts_of_pairs(text: bytes) -> List[ItemPart]:
    return [ItemPart(name, None, "", content) for name, content in form_pairs(text)]


def _parts_of_multipart(body: bytes, content_type: str) -> List[ItemPart]:
    from banana_worker.text.multipart_parts import parts_of

    try:
        return [
            ItemPart(disposition.params["name"], disposition.params.get("filename"), kind.value, content)
            for disposition, kind, content in parts_of(body, content_type)
        ]
    except ValueError as cause:
        raise _bad_item(f"The multipart body could not be read: {cause}.") from cause


def _value_of(part: ItemPart, is_raw: bool) -> Any:
    is_json = part.content_type == "application/json"
    if is_raw or not (is_json or part.content_type.startswith("text")):
        return bytearray(part.data)
    what = "The body" if part.name == "body" else f"The field {json.dumps(part.name[:100], ensure_ascii=False)}"
    try:
        return read_json(part.data, what) if is_json else part.data.decode()
    except ServeError as cause:
        raise _bad_item(cause.message) from cause
    except UnicodeDecodeError:
        raise _bad_item(f"{what} is not text in UTF-8.") from None


def _bad_item(message: str) -> ServeError:
    return ServeError("SERVE_BAD_BODY", message, kind="input")


# Clients of Multi Model Server know this text.
_UNSUPPORTED = "Unsupported model output data type."

_JSON_INDENT = 2


def write_result(value: object, call: Call) -> Tuple[str, BytesLike]:
    """Bytes and text as they are, any other value as indented JSON; the log names the place of bytes in it. Raises
    SERVE_OUTPUT_INVALID."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "application/octet-stream", value
    if isinstance(value, str):
        return "text/plain; charset=utf-8", utf8(value)
    try:
        return "application/json", indented_json_bytes(value, call.ascii_json, _JSON_INDENT)
    except ServeError as cause:
        detail = f"{_UNSUPPORTED} {cause.detail or cause.message}"
        raise ServeError("SERVE_OUTPUT_INVALID", _UNSUPPORTED, detail) from cause
