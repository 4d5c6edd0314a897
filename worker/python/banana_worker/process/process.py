"""This process: the descriptors that it shares with the front, their fate in its children, and its end.

fd 3 takes frames to the front, fd 4 brings frames from it, fd 5 is the note of the calls that have begun
(docs/wire.md).
"""

from __future__ import annotations

import _socket
import atexit
import errno
import os
import stat
import sys
from typing import Callable, Dict, List, Tuple

UP_FD, DOWN_FD, BEGUN_FD = 3, 4, 5

# Bytes of a large answer that the kernel takes while the front is busy. With the system's 208 kB this thread is woken
# fifty times for 10 MB, and waits each time for a core.
_SEND_BUFFER_BYTES = 1024 * 1024

_PID = os.getpid()
_real_exit = os._exit
_is_fork = False
_in_child: List[Callable[[], None]] = []
# Device and inode behind each of the descriptors at first.
_streams: Dict[int, Tuple[int, int]] = {}


def claim_descriptors() -> None:
    """Keeps the descriptors from every program and process that the app starts. Call it before the app's code runs."""
    for fd in (UP_FD, DOWN_FD, BEGUN_FD):
        os.set_inheritable(fd, False)
    for fd in (UP_FD, DOWN_FD):
        os.set_blocking(fd, True)
        _streams[fd] = _identity(fd)
    _enlarge_send_buffer()
    os.register_at_fork(after_in_child=_leave_to_parent)


def _enlarge_send_buffer() -> None:
    """Enlarges it as far as the system allows (`net.core.wmem_max`)."""
    if not stat.S_ISSOCK(os.fstat(UP_FD).st_mode):
        return  # a pipe: the worker was not started by the front
    up = _socket.socket(fileno=UP_FD)
    try:
        up.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    finally:
        up.detach()


def in_fork() -> bool:
    """Whether this is a child that the app has forked, which runs the rest of the worker's code by mistake."""
    return _is_fork


def on_fork(leave: Callable[[], None]) -> None:
    """Registers `leave`, which runs in every forked child and releases something that is shared with the front."""
    _in_child.append(leave)


def _leave_to_parent() -> None:
    global _is_fork
    if _is_fork:
        return  # a child of a child, which has released them already
    _is_fork = True
    for leave in _in_child:
        leave()
    # The numbers stay taken; otherwise the child's next files would get them.
    own = range(UP_FD, BEGUN_FD + 1)
    os.closerange(own.start, own.stop)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in own:
        if fd != null:
            os.dup2(null, fd, inheritable=False)
    if null not in own:
        os.close(null)


def watch_exit(report: Callable[[str], None]) -> None:
    """Replaces `os._exit`: `report` gets a text such as `os._exit(1) was called` just before the process ends."""

    def exit_and_tell(status: int) -> None:
        if not in_fork():
            report("os._exit(%s) was called" % (status,))
        _real_exit(status)

    os._exit = exit_and_tell  # type: ignore[assignment]


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
        is_there = _identity(fd) == _streams[fd]
    except OSError:
        _die_of_lost("closed file descriptor %d" % fd)
    else:
        if not is_there:
            _die_of_lost("put another file over file descriptor %d" % fd)


def _identity(fd: int) -> Tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _die_of_lost(what: str) -> None:
    sys.stderr.write(
        "The worker cannot go on: the app has %s, through which it speaks with the server. Let the app leave descriptors 3 to 5"
        " alone, which os.closerange, os.dup2 and becoming a daemon do not.\n" % what
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
