"""One item's request and its response: `context.request_processor[idx]`."""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

# The longest phrase that stands beside a status.
MAX_PHRASE_CHARS = 200


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


class RequestProcessor:
    """The headers of a request, and the status and headers of its answer."""

    def __init__(
        self,
        request_header: Mapping[str, str],
        field_types: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._request_header = request_header
        self._field_types = field_types
        self._properties: Optional[RequestProperties] = None
        self._response_header: Dict[str, Tuple[str, str]] = {}
        self._status_code = 200
        self._reason_phrase = ""

    def get_request_property(self, key: str) -> Optional[str]:
        """A header of the request, by its name in any case; None if it was not sent."""
        headers = self._request_header
        return headers.get(str(key).lower(), headers.get(key))

    def get_request_properties(self) -> RequestProperties:
        """All headers by their names in any case, and for each field of the item `{"content-type": ...}`."""
        if self._properties is None:
            self._properties = RequestProperties(self._request_header, self._field_types())
        return self._properties

    def report_status(self, code: int, reason_phrase: Optional[str] = None) -> None:
        """Sets the status of the answer, and the phrase beside it.

        Characters that cannot stand in a phrase are replaced by `?`. Raises ValueError unless `code` is a whole number
        from 200 to 599.
        """
        self._status_code = _status(code)
        self._reason_phrase = _phrase("" if reason_phrase is None else str(reason_phrase))

    def get_response_status_code(self) -> int:
        return self._status_code

    def get_response_status_phrase(self) -> str:
        """Empty for the standard one."""
        return self._reason_phrase

    def add_response_property(self, key: str, value: object) -> None:
        """Sets a header of the answer, replacing one of the same name. Raises ValueError if it contains a line
        break."""
        name, text = _text(key), _text(value)
        if any(mark in part for part in (name, text) for mark in "\r\n"):
            raise ValueError("response header {} has a line break in it".format(json.dumps(name[:100])))
        self._response_header[name.lower()] = (name, text)

    def get_response_header(self, key: str) -> Optional[str]:
        """A header of the answer that was set, by its name in any case."""
        found = self._response_header.get(str(key).lower())
        return None if found is None else found[1]

    def get_response_headers(self) -> Dict[str, str]:
        """The headers of the answer that were set."""
        return dict(self._response_header.values())


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, (bytes, bytearray)) else str(value)


def _status(code: object) -> int:
    try:
        status = int(code)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        status = 0
    if 200 <= status <= 599 and (isinstance(code, str) or status == code):
        return status
    raise ValueError("status {} is not a whole number from 200 to 599".format(code))


def _phrase(text: str) -> str:
    """Replaces characters, because a phrase must not fail its item."""
    return re.sub(r"[^\t -~\x80-\xff]", "?", text[:MAX_PHRASE_CHARS])
