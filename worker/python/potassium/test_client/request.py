"""A request of a test, before it is a call."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple


class AskedRequest(NamedTuple):
    method: str
    path: str
    query: str
    headers: List[Tuple[str, str]]
    content_type: str
    body: bytes

    def header(self, name: str) -> Optional[str]:
        """The value; `name` in lower case."""
        return next((value for each, value in self.headers if each.lower() == name), None)
