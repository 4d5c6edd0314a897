"""Predictions in the form of Cog's HTTP API: the app gets the field `input`, and its answer is the field `output`."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from datetime import datetime, timezone
from typing import Any, List, Optional
from urllib.parse import parse_qs

from banana_worker.formats import AnyExchange
from banana_worker.formats.reply import BytesBody, Reply, StreamBody, assert_no_error
from banana_worker.formats.task_bodies import fields_of
from banana_worker.text.header_params import media_type
from banana_worker.values.conversions import PNG_TYPE, is_image, png_bytes
from banana_worker.values.json_encoding import json_text

# The words for the client of a custom service.
ITEM_REFUSAL = (
    "A custom service of Multi Model Server makes no predictions of Cog; call it at /predictions/{model_name}."
)

_BYTES = (bytes, bytearray, memoryview)


class Exchange(AnyExchange):
    _id = ""
    _created_ms = 0.0
    _started_ms = 0.0
    _input = ""

    def read(self, body: bytes) -> object:
        fields = fields_of(body) if body else {}
        params = parse_qs(self.call.dialect_params)
        given = fields.get("id")
        self._id = given if isinstance(given, str) else params.get("id", [""])[0]
        self._created_ms = float(params.get("created", ["0"])[0])
        self._started_ms = time.time() * 1000
        model_input: object = {} if fields.get("input") is None else fields["input"]
        self._input = json_text(model_input)  # the app may change it
        return model_input

    def write(self, answer: Reply) -> Reply:
        head, body = answer.head, answer.body
        assert_no_error(answer)
        own = head._replace(content_type="application/json")
        if not isinstance(body, StreamBody):
            return Reply(own, BytesBody(self._prediction(_output_of(body, head.content_type))))
        kind = None if body.by_accept else head.content_type
        items: List[Any] = []

        def collect(item: object) -> bytes:
            items.append(item)
            return b""  # lets a cancelled call end

        return Reply(own, body._replace(encode=collect, last=lambda: self._prediction(_list_of(items, kind))))

    def _prediction(self, output: str) -> bytes:
        """The front knows the other facts about a job."""
        own = f'"input":{self._input},"output":{output}}}'
        if self.call.job_id:
            return ("{" + own).encode("utf-8", "backslashreplace")
        completed_ms = time.time() * 1000
        facts = {
            "id": self._id,
            "status": "succeeded",
            "error": None,
            "created_at": _date_of(self._created_ms),
            "started_at": _date_of(self._started_ms),
            "completed_at": _date_of(completed_ms),
            "metrics": {"predict_time": round(completed_ms - self._started_ms) / 1000},
        }
        return f"{json.dumps(facts)[:-1]},{own}".encode("utf-8", "backslashreplace")


def _output_of(body: Any, content_type: str) -> str:
    """The JSON of a whole answer."""
    return _body_text(bytes(body.data), content_type) if isinstance(body, BytesBody) else _text_of(body.value)


def _list_of(items: List[Any], kind: Optional[str]) -> str:
    """`kind`: of a response, whose bytes are one body; None for values of the app, which are a list."""
    if kind is not None and all(isinstance(item, _BYTES) for item in items):
        return _body_text(b"".join(items), kind)
    return f"[{','.join(map(_text_of, items))}]"


def _body_text(data: bytes, content_type: str) -> str:
    """A data URL, unless the type is JSON or text."""
    kind = media_type(content_type)
    if not data:
        return "null"
    if kind == "application/json":
        return json_text(json.loads(data))
    if kind.startswith("text/"):
        try:
            return json_text(data.decode())
        except UnicodeDecodeError:
            pass  # it is sent as bytes
    return _data_url(data, content_type)


def _text_of(value: Any) -> str:
    if isinstance(value, _BYTES):
        return _data_url(bytes(value), "application/octet-stream")
    return _data_url(png_bytes(value), PNG_TYPE) if is_image(value) else json_text(value)


def _data_url(data: bytes, kind: str) -> str:
    return json.dumps(f"data:{kind};base64,{b64encode(data).decode()}")


def _date_of(ms: float) -> str:
    return datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
