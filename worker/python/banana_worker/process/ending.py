"""The end of this process: asked for by the app or the front, or forced by the loss of a descriptor. It is also the end of a
forked child that runs the worker's code by mistake."""

from __future__ import annotations

import atexit
import errno
import os
import sys
from typing import Callable, Optional

from banana_worker.failures.thrown import attribute, is_a, traceback_of
from banana_worker.process.descriptors import in_fork, is_in_place

_PID = os.getpid()
_real_exit = os._exit


def watch_exit(report: Callable[[str], None]) -> None:
    """Replaces `os._exit`: `report` gets a text such as `os._exit(1) was called` just before the process ends."""

    def report_and_exit(status: int) -> None:
        if not in_fork():
            report("os._exit(%s) was called" % (status,))
        _real_exit(status)

    os._exit = report_and_exit  # type: ignore[assignment]


def exit_now(code: int) -> None:
    """Ends the process without waiting for threads of the app."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # the app has closed or replaced the stream
    _real_exit(code)


def exit_cleanly(code: int) -> None:
    """Runs the exit functions of the app and its libraries, then ends the process."""
    try:
        _end_process_pools()
        atexit._run_exitfuncs()
    finally:
        exit_now(code)


def _end_process_pools() -> None:
    """Ends pools of processes, for which the exit functions wait. Python does so where it joins its threads; the
    worker joins none, since a thread of the app may never end."""
    pools = sys.modules.get("concurrent.futures.process")
    if pools is not None and sys.version_info >= (3, 9):
        pools._python_exit()  # in Python 3.8 it is one of the exit functions


def is_broken_pipe(error: OSError) -> bool:
    """Whether the error comes from the system. Otherwise a signal handler of the app raised it."""
    return error.errno is not None and not isinstance(error, TimeoutError)


def die_of_broken_pipe(fd: int, error: OSError) -> None:
    """Ends this worker: nothing can be written to `fd` or read from it any more. Either the front is gone, or the
    app has closed the descriptor, as programs that become daemons do, or has put another file over it."""
    die_if_lost(fd)
    if error.errno not in (errno.EPIPE, errno.ECONNRESET) and os.getpid() == _PID:
        _die_of_lost("made file descriptor %d fail (%s)" % (fd, error))
    die_with_front()


def die_if_lost(fd: int) -> None:
    """Ends this worker if the app has closed the descriptor or put another file over it."""
    if os.getpid() != _PID:
        return
    try:
        is_there = is_in_place(fd)
    except OSError:
        _die_of_lost("closed file descriptor %d" % fd)
    else:
        if not is_there:
            _die_of_lost("replaced file descriptor %d" % fd)


def _die_of_lost(what: str) -> None:
    sys.stderr.write(
        "The worker cannot go on: the app has %s, which the worker needs for its connection to the server. Leave descriptors 3 to 5 as they are:"
        " os.closerange, os.dup2 and becoming a daemon close or replace them.\n" % what
    )
    exit_now(1)


def die_with_front() -> None:
    """Ends this worker and the programs that it started, because no front is left. A forked child ends itself alone,
    and not its parent."""
    if os.getpid() != _PID:
        _real_exit(1)
    try:
        os.killpg(_PID, 9)
    finally:
        _real_exit(1)  # not the leader of a process group: started by hand


class AppExit(BaseException):
    """The app ended its worker, with `sys.exit` or in another way that is not the failure of one call."""

    def __init__(self, thrown: BaseException) -> None:
        super().__init__(thrown)
        self.thrown = thrown


def check_is_worker(thrown: Optional[BaseException]) -> None:
    """Called when the app's code has returned or raised: a forked child that gets here ends. @raises AppExit if the
    app wants its worker to end"""
    if in_fork():
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
    exit_now(code)


def exit_code_of(thrown: BaseException) -> int:
    """The exit code of the process for a SystemExit."""
    code = attribute(thrown, "code")
    if code is None:
        return 0
    return int(code) if issubclass(type(code), int) else 1
