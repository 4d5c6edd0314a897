"""What a route wants of bodies besides those that every route takes."""

from __future__ import annotations

from typing import NamedTuple


class InputWishes(NamedTuple):
    # A form becomes a dict of fields.
    forms: bool = False
    # `text/plain` and other text becomes a str.
    text: bool = False
    # Every body becomes an item of a custom service, and so does the request's query.
    items: bool = False
    # The values of such items are bytes, whatever their content type.
    raw_items: bool = False


NO_WISHES = InputWishes()
