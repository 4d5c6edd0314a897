"""The list of all wire formats. A new one is a file in this folder and a line here."""

from __future__ import annotations

from types import ModuleType

from banana_worker.standard_modules import import_standard

# The modules of the formats by the name that a call may fix, or that `read_input.py` finds for its content type. Each
# has `read(body, call)`, which raises ServeError SERVE_BAD_BODY; one that clients can ask for has `write(value, call)`.
FORMATS = {
    "json": "json",
    "form": "form",
    "text": "text",
    "msgpack": "msgpack",
    "multipart": "multipart",
    "bytes": "bytes",
    "mms": "mms",
}

# Formats of an answer that a client gets if its Accept header names their type; JSON otherwise.
BY_ACCEPT = (
    ("application/msgpack", "msgpack"),
    ("application/x-msgpack", "msgpack"),
    ("application/vnd.msgpack", "msgpack"),
)


def format_named(name: str) -> ModuleType:
    """The format's module, imported with the first body that needs it."""
    return import_standard(f"{__name__}.{FORMATS[name]}")
