"""Reads a call's body in the format that the dialect fixed, or else that the content type names. Some kinds of body an app
gets only if it asks for them."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional

from banana_worker.failures.sentences import as_sentence
from banana_worker.formats import AnyExchange, BY_ACCEPT, format_named
from banana_worker.formats.json import read_json
from banana_worker.protocol.errors import ServeError, bad_body
from banana_worker.protocol.messages import Call
from banana_worker.protocol.tables import CALL_ERRORS
from banana_worker.standard_modules import import_standard
from banana_worker.text.header_params import media_type


class InputWishes(NamedTuple):
    """Kinds of body that an app or a route has asked for."""

    # `application/x-www-form-urlencoded` becomes a dict of fields.
    forms: bool = False
    # `text/plain` and other text becomes a str.
    text: bool = False
    # Every body becomes an item of a custom service, and so does the request's query (`formats/mms.py`).
    items: bool = False
    # The values of such items are bytes, whatever their content type.
    raw_items: bool = False


NO_WISHES = InputWishes()

# The wishes of a custom service.
ITEMS = InputWishes(forms=True, text=True, items=True)

# The wishes of a custom service that decodes its bodies itself.
RAW_ITEMS = InputWishes(forms=True, text=True, items=True, raw_items=True)


def input_wishes(given: Mapping[str, object], where: str) -> InputWishes:
    """Reads `forms` and `text`; `where` names their owner in an error. @raises TypeError if one is not a bool"""
    wishes = {name: given.get(name) for name in ("forms", "text")}
    for name, value in wishes.items():
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"{where}: {name} must be True or False")
    return InputWishes(forms=wishes["forms"] is True, text=wishes["text"] is True)


def read_input(
    call: Call, body: bytes, wishes: InputWishes = NO_WISHES, exchange: Optional[AnyExchange] = None
) -> object:
    """The app's input; None for an empty body, unless the app takes items or the format is a dialect's own.
    `exchange` reads the body if it is in that format. @raises ServeError SERVE_BAD_BODY if the body is malformed."""
    if call.format == "websocket":
        return None
    if wishes.items:
        return import_standard("banana_worker.formats.mms").read_item(body, call, wishes.raw_items)
    if call.format != "auto":
        return _read_in(call.format, call, body, exchange)
    if not body:
        return None
    name = format_of(call.content_type, wishes)
    return _read_unasked_json(body, call) if name == "json" else _read_in(name, call, body, None)


def _read_in(name: str, call: Call, body: bytes, exchange: Optional[AnyExchange]) -> object:
    """Reads a body in the format of this name, which may refuse it with any code: one that no call ends with becomes
    SERVE_BAD_BODY."""
    format = format_named(name)
    try:
        if hasattr(format, "Exchange"):
            own: AnyExchange = exchange or format.Exchange(call)
            return own.read(body)
        return format.read(body, call) if body else None
    except ServeError as error:
        if error.code not in CALL_ERRORS:
            error.code = "SERVE_BAD_BODY"
        raise


# Formats of types that no app has to ask for.
_BY_TYPE = {**dict(BY_ACCEPT), "multipart/form-data": "multipart"}

# The type that curl's `-d` sends for any body: a mistyped JSON must not reach an app as a field.
_FORM_TYPE = "application/x-www-form-urlencoded"


def format_of(content_type: str, wishes: InputWishes = NO_WISHES) -> str:
    """`json` for JSON and for no type, and also for text and forms if the app has not asked for them; `bytes` for an
    unknown type."""
    if content_type == "application/json":
        return "json"
    kind = media_type(content_type)
    if kind in ("application/json", "") or kind.endswith("+json"):
        return "json"
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if kind == _FORM_TYPE:
        return "form" if wishes.forms else "json"
    if kind.startswith("text/"):
        return "text" if wishes.text else "json"
    return "bytes"


def _read_unasked_json(body: bytes, call: Call) -> object:
    """Raises SERVE_BAD_BODY that also explains how an app gets forms and text, if the body may be one of them."""
    try:
        return read_json(body)
    except ServeError as error:
        hint = _HINTS.get(format_of(call.content_type, ITEMS))
        if hint is None:
            raise
        raise bad_body(f"{as_sentence(error.message)} {hint}") from error


_HINTS = {
    "form": "A form is read as JSON, because curl sends JSON with that content type, unless the app sets"
    ' `config = {"forms": True}`, or a route of Potassium with `forms=True`.',
    "text": 'Text is read as JSON unless the app sets `config = {"text": True}`,'
    " or a route of Potassium with `text=True`.",
}
