"""The base of the two runners of calls that begin together: `call_runner.py` for one, `batch_runner.py` for a batch."""

from __future__ import annotations

import sys
from typing import List, Optional

from banana_worker.failures.thrown import attribute, is_a, traceback_of
from banana_worker.process import descriptors, ending
from banana_worker.process.begun_note import BegunNote
from banana_worker.protocol.errors import ServeError
from banana_worker.report.print_attribution import PrintAttribution
from banana_worker.run.arriving_calls import WaitingCall
from banana_worker.run.loaded_app import LoadedApp
from banana_worker.run.running_call import CallHost, RunningCall
from banana_worker.run.tasks import Tasks, is_cancellation


class RunnerOptions:
    """The parts that both runners need. One object for all calls of a worker."""

    def __init__(self, app: LoadedApp, host: CallHost, prints: PrintAttribution, tasks: Tasks, note: BegunNote) -> None:
        self.app = app
        self.host = host
        self.prints = prints
        self.tasks = tasks
        self.note = note


class AppExit(BaseException):
    """The app ended its worker, with `sys.exit` or in another way that is not the failure of one call."""

    def __init__(self, thrown: BaseException) -> None:
        super().__init__(thrown)
        self.thrown = thrown


class Runner:
    """The calls that run now."""

    def __init__(self, options: RunnerOptions) -> None:
        self.options = options

    def take(self, batch: List[WaitingCall]) -> None:
        """From here on `find` finds these calls, which begin next."""
        raise NotImplementedError

    def run(self) -> Optional[BaseException]:
        """Runs the taken calls to their end, and returns the app's exception, if there was one. @raises AppExit"""
        raise NotImplementedError

    def find(self, call_id: int) -> Optional[RunningCall]:
        """The call, if it runs. For the thread that reads messages."""
        raise NotImplementedError

    def cancel(self, call_id: int, reason: str) -> None:
        """Cancels a call whose answer is not needed any more. For the thread that reads messages."""
        raise NotImplementedError

    def abort(self, reason: str) -> None:
        """Asks the app to end all of its calls. For the thread that reads messages."""
        raise NotImplementedError


def fail_raised(running: RunningCall, thrown: BaseException) -> Optional[BaseException]:
    """Ends a call with an error, because its function, or what it returned, has raised. Returns the exception, unless
    it only reports that the call was cancelled."""
    if running.has_ended:
        return None  # the ending was the last step that could raise
    if running.cancelled and is_cancellation(thrown):
        running.fail(ServeError("SERVE_CANCELLED"))
        return None
    running.fail(thrown)
    return thrown


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
