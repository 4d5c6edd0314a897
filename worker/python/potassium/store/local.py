"""Values in one file, shared by every process of this host that opens it.

It is SQLite's, in its WAL mode: writers take turns, readers never wait, and a commit is whole or absent if a process
dies, and on disk once `set` returns.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from typing import Any, Callable, List, Optional, TypeVar

from .backend import Backend, expiry_of
from .config import LocalConfig
from .local_file import DEFAULT_PATH, FILE_MODE, check_file, folder_lock, inode_of, is_store, set_aside

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

    def __len__(self) -> int:
        """Number of values held, including expired ones that are not yet removed."""
        return self._run(lambda db: db.execute("SELECT count(*) FROM entries").fetchone())[0]

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
