"""Finds the app's own places in tracebacks and on the stack."""

from __future__ import annotations

import os
import re
import sys
from types import FrameType
from typing import Any, List, NamedTuple, Optional

from banana_worker.failures.thrown import class_name, described, traceback_of
from banana_worker.standard_modules import import_standard

OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_STANDARD_FOLDER = os.path.dirname(os.path.abspath(os.__file__)) + os.sep


def is_own(file: str) -> bool:
    """Whether the code is the server's or part of Python's import system, which is of no use to an author."""
    return file.startswith((OWN_FOLDER, "<frozen importlib"))


def is_of_app(file: str) -> bool:
    """Whether the code is neither ours nor Python's nor an installed package's."""
    return not is_machinery(file) and not _is_installed(file)


def is_machinery(file: str) -> bool:
    """Whether the code is ours or Python's, and not an installed package's. Code that is made while the program
    runs, as that of named tuples is, counts as Python's, although any package may have made it."""
    if is_own(file) or file.startswith("<"):
        return True
    return file.startswith(_STANDARD_FOLDER) and not _is_installed(file)


def _is_installed(file: str) -> bool:
    return "site-packages" in file or "dist-packages" in file


def first_frame_outside(thrown: BaseException) -> Optional[str]:
    """The place, `file:line`, of the innermost frame in the app's own code."""
    places = [place for place in places_in(thrown) if is_of_app(place.file)]
    return "%s:%d" % places[-1][:2] if places else None


def callers_place() -> str:
    """The place of the innermost code of the app that is running now."""
    return place_on_stack(sys._getframe(1)) or "a place outside the app"


def place_on_stack(innermost: FrameType) -> Optional[str]:
    """The place of the innermost code of the app on this stack; None if there is none."""
    frame: Optional[FrameType] = innermost
    while frame is not None:
        if is_of_app(frame.f_code.co_filename):
            return "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


# The end of pdb, which reads commands from a terminal.
_NO_TERMINAL = (
    "breakpoint() and pdb need a terminal, and a worker has none. Call the function in a process of your own "
    "(banana_serve.testing.context makes its ctx), or attach debugpy: docs/debugging.md"
)


def traceback_without_own_frames(thrown: BaseException) -> str:
    """The whole traceback, causes included, without our frames. Never raises."""
    try:
        whole = import_standard("traceback").TracebackException(type(thrown), thrown, traceback_of(thrown))
        _strip(whole)
        text = _short_chain("".join(whole.format()).rstrip("\n"))
        return "%s: %s" % (text, _NO_TERMINAL) if class_name(thrown) == "BdbQuit" else text
    except BaseException:
        return plain_traceback(thrown)


def _short_chain(text: str) -> str:
    """Leaves out the middle of a long chain of exceptions: the end says what was raised."""
    parts = re.split("(\\n\\n(?:%s)\\n\\n)" % "|".join(_LINKS), text)
    left = (len(parts) + 1) // 2 - 2 * _SHOWN
    if left <= 0:
        return text
    begin, end = parts[: 2 * _SHOWN], parts[-2 * _SHOWN + 1 :]
    return "%s(%d more exceptions)\n\n%s" % ("".join(begin), left, "".join(end))


# Exceptions of a chain that are shown at its beginning, and at its end.
_SHOWN = 10

# Lines of Python between two exceptions of a chain.
_LINKS = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)


def plain_traceback(thrown: BaseException) -> str:
    """The traceback without source lines and causes. It needs no module of Python, whose imports a file of the app
    with the same name may break. Never raises."""
    lines = ["Traceback (most recent call last):"]
    for place in places_in(thrown):
        if not is_own(place.file):
            lines.append('  File "%s", line %d, in %s' % place)
    lines.append(described(thrown))
    return "\n".join(lines)


class Place(NamedTuple):
    file: str
    line: int
    function: str


def places_in(thrown: BaseException) -> List[Place]:
    """The places that the exception passed, the outermost first."""
    places: List[Place] = []
    tb = traceback_of(thrown)
    while tb is not None:
        code = tb.tb_frame.f_code
        places.append(Place(code.co_filename, tb.tb_lineno, code.co_name))
        tb = tb.tb_next
    return places


def _strip(first: Any) -> None:
    open_ones: List[Any] = [first]
    while open_ones:
        one = open_ones.pop()
        if one is None:
            continue
        kept = [frame for frame in one.stack if not is_own(frame.filename)]
        if kept:  # an error of our own code keeps its frames
            one.stack[:] = kept
        open_ones += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())]


def place_in_coroutine(outermost: Any) -> Optional[str]:
    """The place at which the innermost code of the app awaits something; None if there is none."""
    place: Optional[str] = None
    coroutine = outermost
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None and is_of_app(frame.f_code.co_filename):
            place = "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)
        coroutine = getattr(coroutine, "cr_await", None)
    return place
