"""Code of the worker that no signal handler of the app's tears.

A handler that raises, as that of a time limit does, raises wherever the main thread is just then: also amid a message that
is half taken in, or between two steps of the event loop, one of which would be lost. In guarded code the handler runs at
once, and what it raises is raised at the end of that. A function of the app's that guarded code has called is no part of
it: there a handler raises as Python has it.

Before: `main.py` calls `guard_signals`, and the app installs handlers. After: `listener.py` and `event_loop.py` wait and
read in `Guard.run`.
"""

from __future__ import annotations

import functools
from types import CodeType, FrameType
from typing import Any, Callable, Optional

from banana_worker.failures.stack_frame import is_machinery
from banana_worker.standard_modules import import_standard

# The module `signal` calls what is in this one.
_signal = import_standard("_signal")


class Guard:
    """For the main thread. What is run by it may run what another one guards, but not by it again."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` makes what is run come to its end soon, or makes its next wait short; a handler has raised."""
        self._wake = wake
        self._kept: Optional[BaseException] = None

    def run(self, do: Callable[[], None]) -> None:
        """Does it, and raises then what a signal handler has raised meanwhile: the first of several."""
        self._kept = None
        self._run_guarded(do)
        kept, self._kept = self._kept, None
        if kept is None:
            return
        try:
            raise kept
        finally:
            del kept  # its traceback holds this frame

    def _run_guarded(self, do: Callable[[], None]) -> None:
        """As long as this runs, handlers find it on the stack."""
        do()

    def keep(self, thrown: BaseException) -> None:
        """For handlers that find `_run_guarded` on the stack."""
        if self._kept is None:
            self._kept = thrown
        self._wake()


_GUARDED: CodeType = Guard._run_guarded.__code__


class GuardedHandler:
    """Takes the place of a handler of the app's."""

    def __init__(self, handler: Callable[[int, Optional[FrameType]], Any]) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: Optional[FrameType]) -> None:
        guard = guard_of(frame)
        if guard is None:
            self.handler(number, frame)
            return
        try:
            self.handler(number, frame)
        except BaseException as thrown:
            guard.keep(thrown)


def guard_of(frame: Optional[FrameType]) -> Optional[Guard]:
    """Whose guarded code runs in the frame that a signal interrupts; None if it is the app's code, or no guarded one."""
    while frame is not None and is_machinery(frame.f_code.co_filename):
        if frame.f_code is _GUARDED:
            return frame.f_locals["self"]
        frame = frame.f_back
    return None


def guard_signals() -> None:
    """Guards against every handler that is installed from now on, and against the one that Python itself has for SIGINT.
    The app sees its own ones alone."""
    install, installed = _signal.signal, _signal.getsignal

    @functools.wraps(install)
    def signal(number: Any, handler: Any) -> Any:
        return _bare(install(number, GuardedHandler(handler) if callable(handler) else handler))

    @functools.wraps(installed)
    def getsignal(number: Any) -> Any:
        return _bare(installed(number))

    _signal.signal, _signal.getsignal = signal, getsignal
    if getsignal(_signal.SIGINT) is _signal.default_int_handler:
        signal(_signal.SIGINT, _signal.default_int_handler)


def _bare(handler: Any) -> Any:
    return handler.handler if isinstance(handler, GuardedHandler) else handler
