"""Values in one file, shared by every process of this host that opens it.

It is SQLite's, in its WAL mode: writers take turns, readers never wait, and a commit is whole or absent if a process
dies, and on disk once `set` returns.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import sys
import threading
import time
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Generator, List, Optional, TypeVar

from .backend import Backend, expiry_of
from .config import LocalConfig

# Longest wait of a call while another process writes.
BUSY_LIMIT_S = 30
# Most values that are removed at once.
SWEPT_AT_ONCE = 1000

T = TypeVar("T")


class LocalBackend(Backend):
    def __init__(self, config: LocalConfig) -> None:
        # The working directory may change later.
        self._path = os.path.abspath(config.path or DEFAULT_PATH)
        self._lock = threading.Lock()
        self._connection: Optional[sqlite3.Connection] = None
        self._inode = 0
        _BACKENDS.add(self)

    def get(self, key: str) -> Optional[bytes]:
        row = self._run(
            lambda db: db.execute(
                "SELECT value FROM entries WHERE key = ? AND expires_at > ?", (key, time.time())
            ).fetchone()
        )
        return None if row is None else row[0]

    def set(self, key: str, data: bytes, ttl: Optional[float]) -> None:
        entry = (key, data, expiry_of(ttl))
        self._run(lambda db: db.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", entry))
        self.sweep_in_time()

    def delete(self, key: str) -> bool:
        found = (key, time.time())
        return self._run(lambda db: _deleted(db, found))

    def close(self) -> None:
        with self._lock:
            self._let_go()

    def sweep(self) -> None:
        """Removes some of the expired values."""
        self._run(
            lambda db: db.execute(
                "DELETE FROM entries WHERE key IN (SELECT key FROM entries WHERE expires_at <= ? LIMIT ?)",
                (time.time(), SWEPT_AT_ONCE),
            )
        )

    def forget_connection(self) -> None:
        """For a forked child: the connection is its parent's, which goes on with it, and must not be closed here."""
        if self._connection is not None:
            _LEFT_TO_PARENTS.append(self._connection)
        self._connection = None
        self._lock = threading.Lock()

    def _run(self, step: Callable[[sqlite3.Connection], T]) -> T:
        """Runs a step on the connection; once more on a new file, if this one is found to be damaged."""
        with self._lock:
            try:
                try:
                    return step(self._open())
                except sqlite3.DatabaseError as error:
                    self._set_aside_after(error)
                    return step(self._open())
            except (sqlite3.Error, OSError, ValueError) as error:
                raise RuntimeError(f"The local store {self._path} cannot be used: {error}") from error

    def _open(self) -> sqlite3.Connection:
        """The connection to the file that has the store's name now."""
        if self._connection is not None and inode_of(self._path) == self._inode:
            return self._connection
        self._let_go()
        check_file(self._path)
        with folder_lock(self._path):
            self._inode = inode_of(self._path)
            self._connection = _connect(self._path)
            self._inode = inode_of(self._path)
        return self._connection

    def _set_aside_after(self, error: sqlite3.DatabaseError) -> None:
        if not _is_damage(error):
            raise error
        self._let_go()
        with folder_lock(self._path):
            if inode_of(self._path) == self._inode and not is_store(self._path):
                raise ValueError("it is a file of another kind")
            set_aside(self._path, self._inode, str(error))

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


# Connections of forked children's parents.
_LEFT_TO_PARENTS: List[sqlite3.Connection] = []

_BACKENDS: "weakref.WeakSet[LocalBackend]" = weakref.WeakSet()


def _forget_connections() -> None:
    for backend in _BACKENDS:
        backend.forget_connection()


# Registered once for all of them, because Python cannot unregister such a function.
os.register_at_fork(after_in_child=_forget_connections)


def _connect(path: str) -> sqlite3.Connection:
    """Opens the file, or makes it. The folder's lock is held: SQLite does not wait for itself while it changes to
    WAL."""
    connection = sqlite3.connect(path, timeout=BUSY_LIMIT_S, isolation_level=None, check_same_thread=False)
    try:
        os.chmod(path, FILE_MODE)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value BLOB NOT NULL, expires_at REAL NOT NULL)"
        )
        connection.execute("CREATE INDEX IF NOT EXISTS by_expiry ON entries (expires_at)")
    except BaseException:
        connection.close()
        raise
    return connection


def _deleted(db: sqlite3.Connection, found: Any) -> bool:
    existed = db.execute("DELETE FROM entries WHERE key = ? AND expires_at > ?", found).rowcount > 0
    if not existed:
        db.execute("DELETE FROM entries WHERE key = ?", found[:1])
    return existed


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Compares messages of SQLite, since Python has its codes only from 3.11 on."""
    return type(error) is sqlite3.DatabaseError and ("malformed" in str(error) or "not a database" in str(error))


DEFAULT_PATH = os.path.join(".banana-store", "store.sqlite3")
# Only the owner may use the folder that is made for a store, and the file in it.
FOLDER_MODE = 0o700
FILE_MODE = 0o600
# Files that SQLite keeps beside the given one.
COMPANIONS = ("", "-wal", "-shm", "-journal")
_MAGIC = b"SQLite format 3\x00"


def check_file(path: str) -> None:
    """Makes the folder if there is none. Raises OSError or ValueError with the reason for which the file cannot be
    used: another user who can write it could choose the code that a reader of `pickle` runs.

    Called before SQLite opens the file. The file is never opened here while it may be in use: closing it again would
    release the locks of this process on it.
    """
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
