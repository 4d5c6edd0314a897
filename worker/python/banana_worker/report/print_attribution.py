"""Knows which call's code runs, and marks which call a print belongs to, if the log format needs it. It is exact for Python code, in coroutines and
tasks too; native code and the app's own threads get the call that runs at that moment. A line that `logging` writes
has the level and the logger of its record, whichever handler writes it."""

from __future__ import annotations

import io
import sys
from contextvars import ContextVar
from typing import Any, List, Optional, TextIO, Tuple

from banana_worker.standard_modules import import_standard

# The call whose code runs; None if no call is known.
_call: ContextVar[Optional[str]] = ContextVar("banana-serve request id", default=None)

# Level and logger of the record that a handler of `logging` writes; None if none does.
_record: ContextVar[Optional[Tuple[str, str]]] = ContextVar("banana-serve log record", default=None)

_UNIT_SEPARATOR = "\x1f"

_MAX_LOGGER_CHARS = 64


class PrintAttribution:
    def __init__(self, mark: str) -> None:
        """Replaces this process's stdout and stderr if there is a mark, that of the start message. Call once, before the
        app is loaded."""
        self._running = ""
        self._streams: List[MarkedStream] = []
        if not mark:
            return
        for name in ("stdout", "stderr"):
            stream = MarkedStream(getattr(sys, name), mark, self)
            setattr(sys, name, stream)
            setattr(sys, "__%s__" % name, stream)
            self._streams.append(stream)
        _note_records(import_standard("logging").Handler)

    @property
    def request_id(self) -> str:
        """Request id of the call whose code asks; empty outside of calls."""
        call = _call.get()
        return self._running if call is None else call

    def begin(self, request_id: str) -> None:
        """Notes that the code of this call runs from here on."""
        self._running = request_id
        if self._streams:
            self.enter(request_id)

    def end(self) -> None:
        """Notes that no call's code runs."""
        self._running = ""
        if self._streams:
            _call.set(None)

    def enter(self, request_id: str) -> None:
        """Notes that the code of this context belongs to this call, while other calls run at the same time."""
        _call.set(request_id)
        # Otherwise native prints of this call would seem to belong to the last call that printed something.
        for stream in self._streams:
            stream.announce("")


class MarkedStream(io.TextIOWrapper):
    """stdout or stderr that writes, before a print, the mark of the call that it belongs to."""

    def __init__(self, stream: TextIO, mark: str, prints: PrintAttribution) -> None:
        encoding, errors = stream.encoding, stream.errors
        super().__init__(stream.detach(), encoding=encoding, errors=errors, write_through=True)  # type: ignore[attr-defined]
        self._prefix = "%s%s " % (_UNIT_SEPARATOR, mark)
        self._prints = prints
        self._announced = ""

    def write(self, text: str) -> int:
        record = _record.get()
        if record is None:
            self.announce(self._prints.request_id)
            return super().write(text)
        # In one write, so that no print of another thread comes between.
        request_id = self._announced = self._prints.request_id
        end = "%s%s%s" % (self._prefix, request_id, _UNIT_SEPARATOR)
        level, logger = record
        super().write("%s\t%s\t%s%s%s%s" % (end[:-1], level, logger, _UNIT_SEPARATOR, text, end))
        return len(text)

    def announce(self, request_id: str) -> None:
        if request_id == self._announced:
            return
        self._announced = request_id
        try:
            super().write("%s%s%s" % (self._prefix, request_id, _UNIT_SEPARATOR))
        except (ValueError, OSError):
            pass  # the app has closed or detached it, and gets the error at its own prints


def _note_records(handlers: Any) -> None:
    """Notes which record a handler writes, while it does."""
    handle = handlers.handle

    def noted(self: Any, record: Any) -> Any:
        token = _record.set((_level_of(record.levelno), _shown(record.name)))
        try:
            return handle(self, record)
        finally:
            _record.reset(token)

    handlers.handle = noted


def _level_of(number: int) -> str:
    if number >= 40:
        return "error"
    return "warn" if number >= 30 else "info" if number >= 20 else "debug"


def _shown(logger: str) -> str:
    return "".join(one for one in str(logger)[:_MAX_LOGGER_CHARS] if one.isprintable())
