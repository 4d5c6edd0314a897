"""Places in a traceback that are the app's own."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any, List, Optional

from banana_worker.standard_modules import import_standard

OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD_FOLDER = os.path.dirname(os.path.abspath(os.__file__)) + os.sep


def is_own(file: str) -> bool:
    """Whether the code is the server's, or Python's machinery of imports: it tells an author nothing."""
    return file.startswith((OWN_FOLDER, "<frozen importlib"))


def is_of_app(file: str) -> bool:
    """Whether the code is neither ours nor Python's nor an installed package's."""
    return not (
        is_own(file) or file.startswith((_STANDARD_FOLDER, "<")) or "site-packages" in file or "dist-packages" in file
    )


def first_frame_outside(thrown: BaseException) -> Optional[str]:
    """The place, `file:line`, of the innermost frame in the app's own code."""
    place = None
    tb = thrown.__traceback__
    while tb is not None:
        file = tb.tb_frame.f_code.co_filename
        if is_of_app(file):
            place = "%s:%d" % (file, tb.tb_lineno)
        tb = tb.tb_next
    return place


def callers_place() -> str:
    """The place of the innermost code of the app's own that is running now."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        if is_of_app(frame.f_code.co_filename):
            return "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return "a place outside the app"


def traceback_without_own_frames(thrown: BaseException) -> str:
    """The whole traceback, causes included, without frames that are ours. Never raises."""
    try:
        whole = import_standard("traceback").TracebackException(type(thrown), thrown, thrown.__traceback__)
        _strip(whole)
        return "".join(whole.format()).rstrip("\n")
    except Exception:
        return "%s: an exception that cannot be shown" % type(thrown).__name__


def _strip(first: Any) -> None:
    open_ones: List[Any] = [first]
    while open_ones:
        one = open_ones.pop()
        if one is None:
            continue
        kept = [frame for frame in one.stack if not is_own(frame.filename)]
        if kept:  # an error of our own code keeps what there is
            one.stack[:] = kept
        open_ones += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())]
