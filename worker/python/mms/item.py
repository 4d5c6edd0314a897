"""The items that a custom service gets."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Sequence

# One request of a batch: a value for each field of a form and each parameter of the query, or `body` for the whole of
# any other body. A value of type `application/json` is decoded, one of `text/...` is a str, any other a bytearray.
Item = Dict[str, Any]


class ItemPart(NamedTuple):
    """One field as it was sent."""

    name: str
    # None if the part is not a file.
    filename: Optional[str]
    # Without its parameters, in lower case; empty if none was sent.
    content_type: str
    data: bytes


class ReadItem(NamedTuple):
    """An item as it was read from a request."""

    item: Item
    # Every field in the order in which it was sent, those of the query first.
    parts: Sequence[ItemPart]

    def field_types(self) -> Dict[str, str]:
        """The content type of each field, by its name."""
        return {part.name: part.content_type for part in self.parts}
