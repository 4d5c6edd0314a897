"""`multipart/form-data` bodies, read into one dict of fields and files."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple, Union

from banana_worker.failures.sentences import as_sentence
from banana_worker.formats.form import collect_fields
from banana_worker.protocol.errors import bad_body
from banana_worker.protocol.messages import Call
from banana_worker.text.charsets import decode_text
from banana_worker.text.multipart_parts import Part, parts_of

ITEM_TYPE = "multipart/form-data"


class UploadedFile:
    """One file of a `multipart/form-data` body."""

    __slots__ = ("filename", "content_type", "data")

    def __init__(self, filename: str, content_type: str, data: bytes) -> None:
        self.filename = filename
        self.content_type = content_type
        self.data = data

    def __repr__(self) -> str:
        return f"UploadedFile({self.filename!r}, {self.content_type!r}, {len(self.data)} bytes)"


Field = Union[str, UploadedFile]


def read(body: bytes, call: Call) -> Dict[str, Union[Field, List[Field]]]:
    """Fields as text, files as `UploadedFile`; a repeated name gets a list. @raises SERVE_BAD_BODY"""
    try:
        return collect_fields(_fields_of(body, call.content_type))
    except ValueError as cause:
        raise bad_body(f"The multipart body could not be read: {as_sentence(str(cause))}") from cause


def _fields_of(body: bytes, content_type: str) -> Iterator[Tuple[str, Field]]:
    for part in parts_of(body, content_type):
        yield part.disposition.params["name"], _value_of(part)


def _value_of(part: Part) -> Field:
    """A part with a file name is a file, and so is one whose type is neither text nor JSON: decoding would destroy it."""
    filename = part.disposition.params.get("filename")
    if filename is None and _is_text(part.content_type.value):
        return decode_text(part.content, part.content_type.params.get("charset", ""))
    return UploadedFile(_base_name(filename or ""), part.content_type.value or "text/plain", part.content)


def _is_text(kind: str) -> bool:
    return kind == "" or kind.startswith("text") or kind == "application/json" or kind.endswith("+json")


def _base_name(path: str) -> str:
    """Drops the folders that some clients send along with a file name."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return "" if name in (".", "..") else name
