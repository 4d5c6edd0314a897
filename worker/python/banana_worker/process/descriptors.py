"""The descriptors that this process shares with the front, and their fate in its children.

fd 3 takes frames to the front, fd 4 brings frames from it, fd 5 is the note of the calls that have begun
(docs/wire.md).
"""

from __future__ import annotations

import _socket
import os
import stat
from typing import Callable, Dict, List, Tuple

UP_FD, DOWN_FD, BEGUN_FD = 3, 4, 5

# Bytes of a large answer that the kernel takes while the front is busy. With the system's 208 kB this thread is woken
# fifty times for 10 MB, and waits each time for a core.
_SEND_BUFFER_BYTES = 1024 * 1024

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


def is_in_place(fd: int) -> bool:
    """Whether the descriptor is still the one to the front. @raises OSError if it is closed"""
    return _identity(fd) == _streams[fd]


def _identity(fd: int) -> Tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino
