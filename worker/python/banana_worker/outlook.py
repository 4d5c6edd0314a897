"""What an exception says of its cause: whether the next start is likely to fail like this one, whether memory was missing,
and whether the process can go on. The network and scarce resources come back; most other things do not."""

from __future__ import annotations

import errno
import re
from typing import Any, Callable, List

from banana_worker.thrown import attribute, class_name, class_names, is_a, text_of

# The next start would fail in the same way; it may succeed; it may be either.
PERMANENT = "permanent"
TRANSIENT = "transient"
UNKNOWN = "unknown"

_MAX_ERRORS = 64

_MEMORY_TEXT = re.compile(
    "out of memory|bad_alloc|allocation failed|failed to allocate|cannot allocate memory", re.IGNORECASE
)

# What CUDA says of a context that cannot be used any more: an error of its own, with one of these behind it; or a name.
# Two searches, each in time in proportion to the text: it may repeat what a client has sent.
_CUDA_ERROR = re.compile(r"CUDA[\w ]{0,40}?error", re.IGNORECASE)
_LOST_CONTEXT = re.compile(
    "illegal memory access|illegal instruction|illegal address|misaligned address|device-side assert|launch failure|"
    "launch failed|hardware stack error|invalid program counter|uncorrectable ECC|context is destroyed",
    re.IGNORECASE,
)
_LOST_NAME = re.compile("device-side assert triggered|cudaError(Assert|IllegalAddress|LaunchFailure)", re.IGNORECASE)

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
    return TRANSIENT if _some_behind(thrown, _is_transient) else UNKNOWN


def is_out_of_memory(thrown: BaseException) -> bool:
    """Whether the exception, or one behind it, says that memory could not be had."""
    return _some_behind(thrown, _lacks_memory)


def spoils_process(thrown: BaseException) -> bool:
    """Whether the exception says that the GPU is lost to this process: every later call would fail, too."""
    return _some_behind(thrown, _has_lost_gpu)


def is_of_process(thrown: BaseException) -> bool:
    """Whether the exception is of the process, and not of the value that was at hand when it was raised."""
    return is_out_of_memory(thrown) or spoils_process(thrown)


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, (ConnectionError, TimeoutError)) or _lacks_memory(error):
        return True
    if isinstance(error, OSError) and error.errno in _TRANSIENT_CODES:
        return True
    return any(name in _TRANSIENT_CLASSES for name in class_names(error))


def _lacks_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or class_name(error) == "OutOfMemoryError":
        return True
    return isinstance(error, (RuntimeError, OSError)) and _MEMORY_TEXT.search(_text(error)) is not None


def _has_lost_gpu(error: BaseException) -> bool:
    text = _text(error)
    cuda = _CUDA_ERROR.search(text)
    if cuda is not None and _LOST_CONTEXT.search(text, cuda.end()) is not None:
        return True
    return _LOST_NAME.search(text) is not None


def _text(error: BaseException) -> str:
    """As much of its text as is looked at."""
    text = text_of(error) or ""
    return text if len(text) <= 2 * _MOST_CHARS else f"{text[:_MOST_CHARS]}\n{text[-_MOST_CHARS:]}"


def _some_behind(thrown: BaseException, is_so: Callable[[BaseException], bool]) -> bool:
    errors: List[Any] = [thrown]
    seen: List[BaseException] = []
    while errors and len(seen) < _MAX_ERRORS:
        error = errors.pop()
        if not is_a(error, BaseException) or any(error is one for one in seen):
            continue
        seen.append(error)
        try:
            if is_so(error):
                return True
        except BaseException:
            pass  # an exception that raises when it is asked tells nothing
        errors += _behind(error)
    return False


def _behind(error: BaseException) -> List[Any]:
    """What it says of its causes, and the parts of a group; they may be anything."""
    parts = attribute(error, "exceptions")
    named = [attribute(error, name) for name in ("__cause__", "__context__", "reason")]
    return [*named, *parts[:_MAX_ERRORS]] if type(parts) in (list, tuple) else named
