"""The end of the process that an app's code wants when it returns or raises: `sys.exit`, or the end of a forked child."""

from __future__ import annotations

import sys
from typing import Optional

from banana_worker.failures.thrown import attribute, is_a, traceback_of
from banana_worker.process import descriptors, ending


class AppExit(BaseException):
    """The app ended its worker, with `sys.exit` or in another way that is not the failure of one call."""

    def __init__(self, thrown: BaseException) -> None:
        super().__init__(thrown)
        self.thrown = thrown


def check_is_worker(thrown: Optional[BaseException]) -> None:
    """Called when the app's code has returned or raised: a forked child that gets here ends. @raises AppExit if the
    app wants its worker to end"""
    if descriptors.in_fork():
        _end_fork(thrown)
    if thrown is not None and is_a(thrown, SystemExit):
        raise AppExit(thrown)


def _end_fork(thrown: Optional[BaseException]) -> None:
    """Ends the child as Python ends a program."""
    code = 0
    if thrown is not None and is_a(thrown, SystemExit):
        code = exit_code_of(thrown)
    elif thrown is not None:
        sys.excepthook(type(thrown), thrown, traceback_of(thrown))
        code = 1
    ending.exit_now(code)


def exit_code_of(thrown: BaseException) -> int:
    """The exit code of the process for a SystemExit."""
    code = attribute(thrown, "code")
    if code is None:
        return 0
    return int(code) if issubclass(type(code), int) else 1
