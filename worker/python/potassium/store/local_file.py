"""Checks the file of a local store: another user who can write it could choose the code that a reader of `pickle` runs.

The check comes before SQLite opens the file. The file is never opened here while it may be in use: closing it again
would release the locks of this process on it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import time
from contextlib import contextmanager
from typing import Generator

DEFAULT_PATH = os.path.join(".banana-store", "store.sqlite3")
# Only the owner may use the folder that is made for a store, and the file in it.
FOLDER_MODE = 0o700
FILE_MODE = 0o600
# Files that SQLite keeps beside the given one.
COMPANIONS = ("", "-wal", "-shm", "-journal")
_MAGIC = b"SQLite format 3\x00"


def check_file(path: str) -> None:
    """Makes the folder if there is none. Raises OSError or ValueError with the reason for which the file cannot be
    used."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        os.makedirs(folder, mode=FOLDER_MODE, exist_ok=True)
    _check_owner(folder, os.stat(folder), "folder")
    if os.path.lexists(path):
        # The file itself, not the target of a link, which another user may have planted.
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a file")
        _check_owner(path, found, "file")


def _check_owner(path: str, found: os.stat_result, what: str) -> None:
    if found.st_uid not in (0, os.getuid()):
        problem = f"the {what} {path} belongs to another user (uid {found.st_uid})"
        cure = f"make it yours (chown {os.getuid()})"
    elif stat.S_IMODE(found.st_mode) & 0o022:
        problem, cure = f"others can write the {what} {path}", "remove that right (chmod go-w)"
    else:
        return
    danger = "what they put there would be read as this app's own"
    raise ValueError(f"{problem}, and {danger}; {cure}, or give the store another path")


def is_store(path: str) -> bool:
    """Whether the file begins as one of SQLite's, or is shorter than such a beginning. It must not be in use."""
    with open(path, "rb") as file:
        return _MAGIC.startswith(file.read(len(_MAGIC)))


def set_aside(path: str, inode: int, why: str) -> None:
    """Renames a damaged file and those beside it, with a message; nothing is deleted.

    Does nothing if another worker has done it, and the file of this name is a new one. The folder's lock is held.
    """
    if inode_of(path) != inode:
        return
    aside = f"{path}.damaged-{int(time.time() * 1000)}"
    for suffix in COMPANIONS:
        if os.path.exists(path + suffix):
            os.rename(path + suffix, aside + suffix)
    print(
        f"The local store {path} is damaged ({why}). It was renamed to {aside}; the store starts empty.",
        file=sys.stderr,
        flush=True,
    )


def inode_of(path: str) -> int:
    """The inode of the file that has this name now; 0 if there is none."""
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return 0


@contextmanager
def folder_lock(path: str) -> Generator[None, None, None]:
    """Held by one thread of one process of this host at a time."""
    descriptor = os.open(os.path.dirname(path), os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        # A process that was forked meanwhile has the descriptor too, and closing ends the lock only when all have
        # closed it.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
