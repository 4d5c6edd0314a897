"""Lines for the log about mistakes of an app that fail no call. Each mistake has one line per worker."""

from __future__ import annotations

from typing import Callable, Optional, Set

_given: Set[str] = set()

# Mistakes that have a line: an app may make new ones in every call.
_MOST = 100

_write: Optional[Callable[[str], None]] = None


def write_hints_to(receiver: Optional[Callable[[str], None]]) -> None:
    """Names the receiver of the lines. Every mistake may have its line again."""
    global _write
    _write = receiver
    _given.clear()


def hint_once(mistake: str, line: str) -> None:
    """Writes the line, unless this mistake has had one."""
    if _write is None or mistake in _given or len(_given) >= _MOST:
        return
    _given.add(mistake)
    _write(line + " (This is logged once per worker.)")
