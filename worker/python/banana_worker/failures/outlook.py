"""Classifies the cause of an exception: whether the next start is likely to fail like this one, whether memory was
missing, and whether the process can go on. The network and scarce resources recover; most other causes do not."""

from __future__ import annotations

import errno
import re
from typing import Any, Callable, List, Optional

from banana_worker.failures.library_errors import reports_lost_gpu, reports_missing_memory
from banana_worker.failures.thrown import attribute, class_name, class_names, is_a, text_of
from banana_worker.protocol.errors import ServeError


# The next start would fail in the same way; it may succeed; it may do either.
PERMANENT = "permanent"
TRANSIENT = "transient"
UNKNOWN = "unknown"

_MAX_ERRORS = 64

_MEMORY_TEXT = re.compile(
    "out of memory|bad_alloc|allocation failed|failed to allocate|cannot allocate memory", re.IGNORECASE
)

# Number of characters that are searched at the beginning and at the end of a text.
_MOST_CHARS = 10_000

_TRANSIENT_NAMES = (
    "ECONNREFUSED ECONNRESET ECONNABORTED EPIPE ETIMEDOUT EHOSTDOWN EHOSTUNREACH ENETDOWN ENETRESET ENETUNREACH "
    "EADDRINUSE EAGAIN EBUSY EDQUOT EMFILE ENFILE ENOBUFS ENOSPC ENOMEM"
).split()
_TRANSIENT_CODES = {getattr(errno, name) for name in _TRANSIENT_NAMES if hasattr(errno, name)}

# Classes of other libraries, which are not imported here.
_TRANSIENT_CLASSES = {
    "gaierror",
    "timeout",
    "URLError",
    "ConnectTimeout",
    "ReadTimeout",
    "ConnectError",
    "OperationalError",
}


def outlook_of(thrown: BaseException) -> str:
    """`transient` if the exception, or one of its causes, is about the network or a scarce resource; otherwise
    `unknown`."""
    return TRANSIENT if _first_behind(thrown, _is_transient) is not None else UNKNOWN


def is_out_of_memory(thrown: BaseException) -> bool:
    """Whether the exception, or one of its causes, reports missing memory. Text of a client cannot make it true."""
    return _first_behind(thrown, _lacks_memory) is not None


def loss_of_gpu(thrown: BaseException) -> Optional[BaseException]:
    """The exception, or its cause, that reports that this process can no longer use its GPU, so that every later call would
    fail. Text of a client cannot make it so."""
    return _first_behind(thrown, reports_lost_gpu)


def is_of_process(thrown: BaseException) -> bool:
    """Whether the exception is about the process, and not about the value that was handled when it was raised."""
    return is_out_of_memory(thrown) or loss_of_gpu(thrown) is not None


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, (ConnectionError, TimeoutError)) or _lacks_memory(error) or _mentions_memory(error):
        return True
    if isinstance(error, OSError) and error.errno in _TRANSIENT_CODES:
        return True
    return any(name in _TRANSIENT_CLASSES for name in class_names(error))


def _lacks_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or class_name(error) == "OutOfMemoryError":
        return True
    return (isinstance(error, OSError) and error.errno == errno.ENOMEM) or reports_missing_memory(error)


def _mentions_memory(error: BaseException) -> bool:
    """For starts only: there, no text comes from a client yet."""
    return isinstance(error, (RuntimeError, OSError)) and _MEMORY_TEXT.search(_text(error)) is not None


def _text(error: BaseException) -> str:
    """The searched part of its text."""
    text = text_of(error) or ""
    return text if len(text) <= 2 * _MOST_CHARS else f"{text[:_MOST_CHARS]}\n{text[-_MOST_CHARS:]}"


def _first_behind(thrown: BaseException, is_so: Callable[[BaseException], bool]) -> Optional[BaseException]:
    errors: List[Any] = [thrown]
    seen: List[BaseException] = []
    while errors and len(seen) < _MAX_ERRORS:
        error = errors.pop()
        if not is_a(error, BaseException) or any(error is one for one in seen):
            continue
        seen.append(error)
        try:
            if is_so(error):
                return error
        except BaseException:
            pass  # an exception that raises when its attributes are read is of no use
        errors += _behind(error)
    return None


def _behind(error: BaseException) -> List[Any]:
    """Its causes, and the parts of a group; these may be any objects."""
    parts = attribute(error, "exceptions")
    named = [attribute(error, name) for name in ("__cause__", "__context__", "reason")]
    return [*named, *parts[:_MAX_ERRORS]] if type(parts) in (list, tuple) else named


# One input may be too large; a process that finds no memory for three in a row has lost it to something else.
_MOST_OUT_OF_MEMORY = 3


class Retirement:
    def __init__(self) -> None:
        # Number of calls in a row that found no memory.
        self._out_of_memory = 0

    def after_call(self, raised: Optional[BaseException]) -> Optional[ServeError]:
        """`raised`: the app's exception in the call that has ended. Returns the reason for which the worker should
        end, or None."""
        if raised is None:
            self._out_of_memory = 0
            return None
        if is_a(raised, ServeError):
            return None  # a body that could not be read, an output that could not be encoded
        loss = loss_of_gpu(raised)
        if loss is not None:
            return ServeError("SERVE_WORKER_LOST", "this process can no longer use its GPU: %.300s" % _first_line(loss))
        if not is_out_of_memory(raised):
            self._out_of_memory = 0
            return None
        self._out_of_memory += 1
        if self._out_of_memory < _MOST_OUT_OF_MEMORY:
            return None
        message = "the app ran out of memory in %d calls in a row" % _MOST_OUT_OF_MEMORY
        return ServeError("SERVE_WORKER_LOST", message)


def _first_line(error: BaseException) -> str:
    return (text_of(error) or class_name(error)).split("\n", 1)[0]
