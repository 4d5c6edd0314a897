"""Items of a custom service: a value for each parameter of the query and each field of the body, or `body` for the
whole body; and back, the result of an item to the bytes of its answer."""

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from mms.item import ItemPart, ReadItem

from banana_worker.formats import format_named
from banana_worker.formats.form import form_pairs
from banana_worker.formats.json import read_json
from banana_worker.protocol.errors import ServeError
from banana_worker.protocol.messages import Call
from banana_worker.text.header_params import media_type
from banana_worker.text.long_integers import LongIntegers
from banana_worker.text.utf8 import utf8
from banana_worker.values.json_encoding import indented_json_bytes

BytesLike = Union[bytes, bytearray, memoryview]


class _Field(NamedTuple):
    """A field as it lies in the request."""

    name: str
    # Without its parameters, in lower case; empty if there is none.
    content_type: str
    content: bytes
    filename: Optional[str] = None


# A dialect whose bodies are JSON sends an empty body for no value.
_NO_VALUE = _Field("body", "application/json", b"null")


def read_item(body: bytes, call: Call, is_raw: bool = False) -> ReadItem:
    """`is_raw`: all values are bytes. Raises SERVE_BAD_BODY."""
    kind = media_type(call.content_type) if call.format == "auto" else _item_type_of(call.format)
    fields = _fields_of_pairs(call.params.encode()) if call.params else []
    if kind == "multipart/form-data":
        fields += _fields_of_parts(body, call.content_type)
    elif kind == "application/x-www-form-urlencoded":
        fields += _fields_of_pairs(body)
    elif call.format == "json" and not body and not is_raw:
        fields.append(_NO_VALUE)
    else:
        fields.append(_Field("body", kind, body))
    return _FieldsItem(fields, is_raw)


def _item_type_of(name: str) -> str:
    """The media type of a body whose format the dialect fixes."""
    body_format = format_named(name)
    kind = getattr(body_format, "ITEM_TYPE", None)
    if kind is None:
        refusal = f"A custom service cannot be called in the format {json.dumps(name)}."
        raise _bad_item(getattr(body_format, "ITEM_REFUSAL", refusal))
    return str(kind)


def _fields_of_pairs(text: bytes) -> List[_Field]:
    return [_Field(name, "", content) for name, content in form_pairs(text)]


def _fields_of_parts(body: bytes, content_type: str) -> List[_Field]:
    from banana_worker.text.multipart_parts import parts_of

    fields: List[_Field] = []
    try:
        for disposition, kind, content in parts_of(body, content_type):
            filename = disposition.params.get("filename")
            fields.append(_Field(disposition.params["name"], kind.value, content, filename))
    except ValueError as cause:
        raise _bad_item(f"The multipart body could not be read: {cause}.") from cause
    return fields


class _FieldsItem(ReadItem):
    def __init__(self, fields: Sequence[_Field], is_raw: bool) -> None:
        """Only the last field of a name is read. Raises SERVE_BAD_BODY."""
        self._fields = fields
        last = fields if len(fields) == 1 else {field.name: field for field in fields}.values()
        integers = LongIntegers()
        self.item: Dict[str, Any] = {field.name: _value_of(field, is_raw, integers) for field in last}

    def parts(self) -> List[ItemPart]:
        return [ItemPart(name, filename, kind, bytes(content)) for name, kind, content, filename in self._fields]

    def field_types(self) -> Dict[str, str]:
        return {field.name: field.content_type for field in self._fields}


def _value_of(field: _Field, is_raw: bool, integers: LongIntegers) -> Any:
    is_json = field.content_type == "application/json"
    if is_raw or not (is_json or field.content_type.startswith("text")):
        return bytearray(field.content)
    what = "The body" if field.name == "body" else f"The field {_quoted(field.name)}"
    if not is_json:
        return _text_of(field.content, what)
    try:
        return read_json(field.content, what, integers)
    except ServeError as cause:
        raise _bad_item(cause.message) from cause


def _text_of(content: bytes, what: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _bad_item(f"{what} is not text in UTF-8.") from None


def _quoted(name: str) -> str:
    return json.dumps(name[:100], ensure_ascii=False)


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
