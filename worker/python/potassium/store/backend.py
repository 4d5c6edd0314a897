"""A place that keeps bytes; `Store` adds encoding, checks and the end."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from typing import Any, Dict, Optional, Tuple

from .config import MemoryConfig

# A write also removes expired values this often.
SWEEP_EVERY_S = 10
NEVER = float("inf")


class Backend:
    """Every method may be called from any thread. The constructor takes a config that passed the check."""

    _swept_at = 0.0

    def get(self, key: str) -> Optional[bytes]:
        """Returns the bytes, None if the key is missing or expired."""
        raise NotImplementedError

    def set(self, key: str, data: bytes, ttl: Optional[float]) -> None:
        """`ttl` in seconds; None: the value never expires."""
        raise NotImplementedError

    def delete(self, key: str) -> bool:
        """Returns whether there was an unexpired value."""
        raise NotImplementedError

    def has(self, key: str) -> bool:
        return self.get(key) is not None

    def close(self) -> None:
        """Frees the backend's resources; no call follows."""

    def sweep(self) -> None:
        """Removes expired values, in a place that does not do so by itself."""

    def sweep_in_time(self) -> None:
        """Called at each write."""
        now = time.monotonic()
        if now - self._swept_at >= SWEEP_EVERY_S:
            self._swept_at = now
            self.sweep()


def expiry_of(ttl: Optional[float]) -> float:
    """The time at which a value of this lifetime expires, as `time.time()` counts."""
    return NEVER if ttl is None else time.time() + ttl


def load_package(name: str) -> Any:
    """Loads a package that only one backend needs. Raises ImportError that explains how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as cause:
        raise ImportError(
            f"This store needs the package {name}, which {sys.executable} cannot load ({cause}). Run: pip install {name}",
            name=name,
        ) from cause


class MemoryBackend(Backend):
    def __init__(self, _config: MemoryConfig) -> None:
        self._entries: Dict[str, Tuple[bytes, float]] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> Optional[bytes]:
        entry = self._entries.get(key)
        return entry[0] if entry is not None and entry[1] > time.time() else None

    def set(self, key: str, data: bytes, ttl: Optional[float]) -> None:
        with self._lock:
            self._entries[key] = (data, expiry_of(ttl))
            self.sweep_in_time()

    def delete(self, key: str) -> bool:
        with self._lock:
            existed = self.has(key)
            self._entries.pop(key, None)
            return existed

    def close(self) -> None:
        self._entries.clear()

    def sweep(self) -> None:
        """Removes expired values. The lock is held."""
        now = time.time()
        self._entries = {key: entry for key, entry in self._entries.items() if entry[1] > now}
