"""`ctx.log`: lines for the server's own log, sent as messages so that they carry worker and request id."""

from __future__ import annotations

import json
import threading
from typing import Any, Mapping, Optional

from banana_worker.failures.stack_frame import first_frame_outside, traceback_without_own_frames
from banana_worker.failures.thrown import text_of
from banana_worker.process import descriptors
from banana_worker.process.channel import Channel
from banana_worker.protocol.tables import MAX_TEXT_CHARS
from banana_worker.values.json_encoding import json_text


class AppLog:
    """May be used from any thread. Fields are encoded like an answer, numbers of numpy included. A line must never
    fail its call: a value that cannot be encoded is named instead."""

    def __init__(self, channel: Channel, request_id: str = "", traceparent: str = "") -> None:
        self._channel = channel
        self._request_id = request_id
        self._traceparent = traceparent

    def of_call(self, request_id: str, traceparent: str) -> AppLog:
        return AppLog(self._channel, request_id, traceparent)

    def debug(self, message: Any, fields: Optional[Mapping[str, Any]] = None, **more: Any) -> None:
        self._send("debug", message, fields, more)

    def info(self, message: Any, fields: Optional[Mapping[str, Any]] = None, **more: Any) -> None:
        self._send("info", message, fields, more)

    def warn(self, message: Any, fields: Optional[Mapping[str, Any]] = None, **more: Any) -> None:
        self._send("warn", message, fields, more)

    warning = warn

    def error(self, message: Any, fields: Optional[Mapping[str, Any]] = None, **more: Any) -> None:
        self._send("error", message, fields, more)

    def _send(self, level: str, message: Any, fields: Optional[Mapping[str, Any]], more: Mapping[str, Any]) -> None:
        text = self._fields_text(fields, more)
        self._channel.send(["log", level, _clip(message), text, self._request_id])

    def _fields_text(self, fields: Any, more: Mapping[str, Any]) -> str:
        if fields is None and not more and not self._traceparent:
            return ""
        if fields is not None and not isinstance(fields, Mapping):
            return json.dumps({"unloggable": "fields are not a mapping"})
        whole = {"traceparent": self._traceparent} if self._traceparent else {}
        try:
            whole.update(fields or {})
            whole.update(more)
            text = json_text(whole, has_hints=False)
        except Exception as error:
            return json.dumps({"unloggable": _clip(error)})
        return (
            text if len(text) <= MAX_TEXT_CHARS else json.dumps({"unloggable": "fields of %d characters" % len(text)})
        )


def _clip(value: Any) -> str:
    text = text_of(value)
    if text is None:
        return "a message that cannot be shown"
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return "%s… (%d characters)" % (text[:MAX_TEXT_CHARS], len(text))


def log_thread_failures(log: AppLog) -> None:
    """From now on, exceptions that end threads of the app are logged. In a forked child, whose log the front does not receive, Python prints them as usual."""
    usual_hook = threading.excepthook

    def on_raised(args: Any) -> None:
        if issubclass(args.exc_type, SystemExit):
            return
        if descriptors.in_fork():
            usual_hook(args)
            return
        name = args.thread.name if args.thread is not None else "?"
        place = first_frame_outside(args.exc_value) or "a place outside the app"
        text = "the thread %s raised %s at %s" % (name, args.exc_type.__name__, place)
        log.error(text, {"traceback": traceback_without_own_frames(args.exc_value)})

    threading.excepthook = on_raised
