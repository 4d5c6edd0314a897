"""Turns a request of a test into the call that a server would make of it."""

from __future__ import annotations

import itertools
import json as json_codec
import uuid
from typing import Any, List, Mapping, Optional, Tuple, Union
from urllib.parse import urlencode

from banana_worker.protocol.messages import Call

Data = Union[str, bytes, Mapping[str, Any], None]
Headers = Union[Mapping[str, str], List[Tuple[str, str]], None]
Query = Union[str, Mapping[str, Any], None]

NO_JSON: Any = object()

_ids = itertools.count(1)


def request_of(
    method: str, path: str, json: Any, data: Data, headers: Headers, content_type: Optional[str], query_string: Query
) -> Tuple[Call, bytes]:
    """The call and its body."""
    body, type_of_body = _body_of(json, data)
    lines = [
        (str(name), str(value)) for name, value in (headers.items() if isinstance(headers, Mapping) else headers or [])
    ]
    # The first line of a name counts.
    by_name = {name.lower(): value for name, value in reversed(lines)}
    sent_type = content_type or by_name.get("content-type") or type_of_body
    lines = [line for line in lines if line[0].lower() != "content-type"]
    if sent_type:
        lines.append(("Content-Type", sent_type))
    target, _, query = path.partition("?")
    target = target if target.startswith("/") else f"/{target}"
    call = Call(
        id=next(_ids),
        body_bytes=len(body),
        inline_bytes=len(body),
        request_id=by_name.get("x-request-id") or by_name.get("x-banana-request-id") or str(uuid.uuid4()),
        route=target,
        path=target,
        query=_query_of(query, query_string),
        format="auto",
        content_type=sent_type,
        accept=by_name.get("accept", ""),
        deadline_ms=None,
        headers="\n".join(part for line in lines for part in line),
        method=method.upper(),
    )
    return call, body


def _body_of(json: Any, data: Data) -> Tuple[bytes, str]:
    """The bytes, and their content type unless the test gives another."""
    if json is not NO_JSON:
        if data is not None:
            raise ValueError("a test request has json or data, not both")
        return json_codec.dumps(json).encode(), "application/json"
    if isinstance(data, str):
        return data.encode(), ""
    if isinstance(data, Mapping):
        return urlencode(dict(data), doseq=True).encode(), "application/x-www-form-urlencoded"
    if data is not None and not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data of a test request is bytes, text or a dict, not {type(data).__name__}")
    return bytes(data or b""), ""


def _query_of(query: str, given: Query) -> str:
    added = urlencode(dict(given), doseq=True) if isinstance(given, Mapping) else given or ""
    return "&".join(part for part in (query, added) if part)
