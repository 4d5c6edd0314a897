"""Values in the memory of this process."""

from __future__ import annotations

import threading
import time
from typing import Dict, Optional, Tuple

from .backend import Backend, expiry_of
from .config import MemoryConfig


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

    def __len__(self) -> int:
        """Number of values held, including expired ones that are not yet removed."""
        return len(self._entries)
