"""The answer that a test gets."""

from __future__ import annotations

import json as json_codec
from typing import Any, Iterator, List, Mapping, Tuple


class ResponseHeaders(Mapping[str, str]):
    """Headers of an answer by name, in any case; repeated ones joined."""

    def __init__(self, lines: List[Tuple[str, str]]) -> None:
        self._lines = lines

    def __getitem__(self, name: str) -> str:
        values = self.getlist(name)
        if not values:
            raise KeyError(name)
        return ", ".join(values)

    def getlist(self, name: str) -> List[str]:
        """Every value of a header."""
        return [value for each, value in self._lines if each.lower() == name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for name, _ in self._lines))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"ResponseHeaders({self._lines!r})"


class TestResponse:
    """`status_code`, `headers`, `data` (bytes), `text`, `json` and `get_json()`."""

    # pytest would take the class for tests.
    __test__ = False

    def __init__(self, status_code: int, headers: List[Tuple[str, str]], data: bytes) -> None:
        self.status_code = status_code
        self.headers = ResponseHeaders(headers)
        self.data = data

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        """The body as JSON; None if its content type says that it is something else."""
        return self.get_json()

    def get_json(self, force: bool = False, silent: bool = False) -> Any:
        """The body as JSON. `force`: whatever its content type is. `silent`: None where it is no JSON, and no
        ValueError."""
        kind = self.content_type.partition(";")[0].strip().lower()
        if not force and kind != "application/json" and not kind.endswith("+json"):
            return None
        try:
            return json_codec.loads(self.data)
        except ValueError:
            if silent:
                return None
            raise

    def __repr__(self) -> str:
        return f"<TestResponse {self.status_code} {self.content_type} {len(self.data)} bytes>"
