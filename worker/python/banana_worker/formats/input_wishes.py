"""Kinds of body that an app gets only if it asks for them; otherwise they are read as JSON, or refused."""

from __future__ import annotations

from typing import Mapping, NamedTuple


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
