"""Headers and fields of a request, as one dict that ignores the case of names."""

from __future__ import annotations

from typing import Any, Mapping


class RequestProperties(dict):  # type: ignore[type-arg]
    """A text for each header, and `{"content-type": ...}` for each field of the item.

    A name is looked up first as it is, then in lower case, as headers are stored. A header goes before a field of
    the same name.
    """

    def __init__(self, headers: Mapping[str, str], field_types: Mapping[str, str]) -> None:
        super().__init__()
        for name, content_type in field_types.items():
            if name.lower() not in headers:
                self[name] = {"content-type": content_type}
        self.update(headers)

    def __missing__(self, key: object) -> Any:
        if isinstance(key, str) and super().__contains__(key.lower()):
            return self[key.lower()]
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or (isinstance(key, str) and super().__contains__(key.lower()))

    def get(self, key: object, default: Any = None) -> Any:
        return self[key] if key in self else default
