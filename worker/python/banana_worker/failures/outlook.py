"""What an exception says of its cause: whether the next start is likely to fail like this one, whether memory was missing,
and whether the process can go on. The network and scarce resources come back; most other things do not."""

from __future__ import annotations

import errno
import re
from typing import Any, Callable, List, Optional

from banana_worker.failures.library_errors import says_gpu_is_lost, says_memory_is_missing
from banana_worker.failures.thrown import attribute, class_name, class_names, is_a, text_of

# The next start would fail in the same way; it may succeed; it may be either.
PERMANENT = "permanent"
TRANSIENT = "transient"
UNKNOWN = "unknown"

_MAX_ERRORS = 64

_MEMORY_TEXT = re.compile(
    "out of memory|bad_alloc|allocation failed|failed to allocate|cannot allocate memory", re.IGNORECASE
)

# What is looked at of a text: so many characters at its begin, and at its end.
_MOST_CHARS = 10_000

_TRANSIENT_NAMES = (
    "ECONNREFUSED ECONNRESET ECONNABORTED EPIPE ETIMEDOUT EHOSTDOWN EHOSTUNREACH ENETDOWN ENETRESET ENETUNREACH "
    "EADDRINUSE EAGAIN EBUSY EDQUOT EMFILE ENFILE ENOBUFS ENOSPC ENOMEM"
).split()
_TRANSIENT_CODES = {getattr(errno, name) for name in _TRANSIENT_NAMES if hasattr(errno, name)}

# Of other libraries, which are not imported here.
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
    """`transient` if the exception, or one behind it, is of the network or of a scarce resource; else `unknown`."""
    return TRANSIENT if _first_behind(thrown, _is_transient) is not None else UNKNOWN


def is_out_of_memory(thrown: BaseException) -> bool:
    """Whether the exception, or one behind it, says that memory could not be had. What a client sent decides nothing."""
    return _first_behind(thrown, _lacks_memory) is not None


def loss_of_gpu(thrown: BaseException) -> Optional[BaseException]:
    """
    The exception, or the one behind it, that says that the GPU is lost to this process: every later call would fail, too.
    What a client sent decides nothing.
    """
    return _first_behind(thrown, says_gpu_is_lost)


def is_of_process(thrown: BaseException) -> bool:
    """Whether the exception is of the process, and not of the value that was at hand when it was raised."""
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
    return (isinstance(error, OSError) and error.errno == errno.ENOMEM) or says_memory_is_missing(error)


def _mentions_memory(error: BaseException) -> bool:
    """For starts alone: there no client has said anything yet."""
    return isinstance(error, (RuntimeError, OSError)) and _MEMORY_TEXT.search(_text(error)) is not None


def _text(error: BaseException) -> str:
    """As much of its text as is looked at."""
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
            pass  # an exception that raises when it is asked tells nothing
        errors += _behind(error)
    return None


def _behind(error: BaseException) -> List[Any]:
    """What it says of its causes, and the parts of a group; they may be anything."""
    parts = attribute(error, "exceptions")
    named = [attribute(error, name) for name in ("__cause__", "__context__", "reason")]
    return [*named, *parts[:_MAX_ERRORS]] if type(parts) in (list, tuple) else named
