"""Protects code of the worker from signal handlers of the app that raise.

A handler that raises, such as that of a time limit, raises wherever the main thread happens to be: perhaps inside a
message that is half read, or between two steps of the event loop, one of which would be lost. In guarded code the
handler runs at once, but its exception is raised at the end of that code. A function of the app that guarded code calls
is not guarded: there a handler raises as usual in Python. Without the guard, each time limit that ends an `await` would
have to cost a restart, or a task of the app might silently never go on.

Before: `main.py` calls `guard_signals`, and the app installs handlers. After: `listener.py` and `event_loop.py` wait
and read in `Guard.run`.
"""

from __future__ import annotations

import functools
from types import CodeType, FrameType
from typing import Any, Callable, Optional

from banana_worker.failures.stack_frame import is_machinery
from banana_worker.standard_modules import import_standard

# The module `signal` calls the functions of this one.
_signal = import_standard("_signal")


class Guard:
    """For the main thread. Guarded code may run code that another guard guards, but not its own guard again."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called when a handler has raised: it makes the guarded code end soon, or shortens its next wait."""
        self._wake = wake
        self._kept: Optional[BaseException] = None

    def run(self, do: Callable[[], None]) -> None:
        """Calls `do`, then raises the first exception that a signal handler raised meanwhile."""
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
        """Handlers look for this frame on the stack."""
        do()

    def keep(self, thrown: BaseException) -> None:
        """Keeps the exception of a handler that has found `_run_guarded` on the stack."""
        if self._kept is None:
            self._kept = thrown
        self._wake()


_GUARDED: CodeType = Guard._run_guarded.__code__


class GuardedHandler:
    """Stands in for a handler of the app."""

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
    """The guard of the code that a signal interrupts; None if that is code of the app, or not guarded."""
    while frame is not None and is_machinery(frame.f_code.co_filename):
        if frame.f_code is _GUARDED:
            return frame.f_locals["self"]
        frame = frame.f_back
    return None


def guard_signals() -> None:
    """Guards against every handler that is installed from now on, and against Python's own for SIGINT. The app sees
    its own handlers only."""
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
